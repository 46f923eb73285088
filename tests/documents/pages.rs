//! The pages of the repository in Markdown.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A page, with its path from the root of the repository.
pub struct Page {
    pub path: PathBuf,
    pub text: String,
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text of a file, by its path from the root of the repository.
pub fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All pages: those in the root, and those in `docs/`, `deploy/` and `fuzz/`.
pub fn all() -> Vec<Page> {
    let mut paths = files("", "md", false);
    for folder in ["docs", "deploy", "fuzz"] {
        paths.extend(files(folder, "md", folder != "fuzz"));
    }
    paths.sort();
    paths.into_iter().map(|path| Page { text: read(&path), path }).collect()
}

/// The files of the production code, without those of unit tests.
pub fn sources() -> Vec<PathBuf> {
    let mut paths = files("src", "rs", true);
    paths.retain(|path| !path.to_string_lossy().contains("test"));
    paths.sort();
    paths
}

/// The files with an extension in a folder, and in the folders below it if asked for.
fn files(folder: &str, extension: &str, is_deep: bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let inside = path.strip_prefix(root()).expect("a path in the repository").to_owned();
        if path.is_dir() && is_deep {
            found.extend(files(&inside.to_string_lossy(), extension, true));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(inside);
        }
    }
    found
}
