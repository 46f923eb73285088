//! The pages.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A page, and where it stands in the repository.
pub struct Page {
    pub path: PathBuf,
    pub text: String,
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The page at this path from the root of the repository.
pub fn page(path: &str) -> Page {
    read(root().join(path))
}

/// The tutorials, the guides, and the pages for those who work on ifmatch itself.
pub fn all() -> Vec<Page> {
    let folders = ["docs/tutorial", "docs/how-to"].map(|folder| root().join(folder));
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).expect("a folder"));
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    paths.extend(["CONTRIBUTING.md", "SECURITY.md"].map(|file| root().join(file)));
    paths.sort();
    paths.into_iter().map(read).collect()
}

fn read(path: PathBuf) -> Page {
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Page { path, text }
}
