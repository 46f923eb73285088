//! A copy of the sources in which each mutant can be switched on at run time.
//!
//! # Design
//!
//! *Why a copy?* The production code has no switches, not even compiled-out ones.
//!
//! *Why switches at run time?* Building the tests takes minutes, and there are more than a hundred mutants.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use super::list::{Kind, Mutant, place_in};

/// The paths, from the root, that the copy does not need.
const LEFT_OUT: [&str; 4] = ["target", ".git", "fuzz", "tests/mutants"];

/// The tools that the tests look for in the directory of build artefacts.
const TOOLS: [&str; 3] = ["target/python", "target/python-earlier", "target/node"];

/// The variable that names the mutant.
pub const SWITCH: &str = "IFMATCH_MUTANT";

/// The module of the copy that tells which mutant is switched on.
const MODULE: &str = "//! Which mutant is switched on.

use std::sync::LazyLock;

static CHOSEN: LazyLock<Option<String>> = LazyLock::new(|| std::env::var(\"IFMATCH_MUTANT\").ok());

pub(crate) fn is(name: &str) -> bool {
    CHOSEN.as_deref() == Some(name)
}
";

/// Returns the directory of the copy.
pub fn directory(root: &Path) -> PathBuf {
    root.join("target/mutants/tree")
}

/// Makes the copy or updates it: an unchanged file is not built again.
pub fn make(root: &Path, mutants: &[Mutant]) {
    let tree = directory(root);
    let broken: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
    let mut kept = BTreeSet::from([PathBuf::from("src/mutants.rs")]);
    for path in files(root, Path::new("")).expect("the sources") {
        let name = path.to_str().expect("names are ASCII");
        let bytes = if broken.contains(name) {
            switched(root, name, mutants).unwrap_or_else(|problem| panic!("{problem}")).into_bytes()
        } else {
            let mut bytes = fs::read(root.join(&path)).expect("a file of the sources");
            if name == "src/lib.rs" {
                bytes.extend(b"\nmod mutants;\n");
            }
            bytes
        };
        put(&tree.join(&path), &bytes);
        copy_rights(&root.join(&path), &tree.join(&path));
        kept.insert(path);
    }
    put(&tree.join("src/mutants.rs"), MODULE.as_bytes());
    for path in files(&tree, Path::new("")).expect("the copy") {
        if !kept.contains(&path) {
            fs::remove_file(tree.join(path)).expect("a file that is no longer among the sources");
        }
    }
    link_tools(root, &tree);
}

/// Returns a file with a switch at each place of its mutants.
pub fn switched(root: &Path, file: &str, mutants: &[Mutant]) -> Result<String, String> {
    let source = fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
    let mut places = Vec::new();
    for mutant in mutants.iter().filter(|mutant| mutant.file == file) {
        places.push((place_in(&source, mutant)?, mutant));
    }
    places.sort_by_key(|(place, _)| (place.start, place.end));
    let (mut text, mut end) = (String::new(), 0);
    for group in places.chunk_by(|(one, _), (other, _)| one == other) {
        let (place, first) = &group[0];
        if place.start < end {
            return Err(format!(
                "{} ({file}): its text overlaps that of another mutant: choose other text",
                first.name
            ));
        }
        text.push_str(&source[end..place.start]);
        text.push_str(&switch(&source[place.clone()], group.iter().map(|(_, mutant)| *mutant)));
        end = place.end;
    }
    text.push_str(&source[end..]);
    Ok(text)
}

/// Returns the choice between the mutants of one place and the original text.
fn switch<'a>(original: &str, mutants: impl Iterator<Item = &'a Mutant>) -> String {
    let (mut text, mut kind) = (String::new(), Kind::Expression);
    for mutant in mutants {
        kind = mutant.kind;
        write!(text, "if crate::mutants::is({:?}) {{ {} }} else ", mutant.name, mutant.put.trim()).expect("a String");
    }
    match kind {
        Kind::Expression => format!("({text}{{ {original} }})"),
        Kind::Statement => format!("{text}{{ {original} }}"),
    }
}

/// Returns the files below a directory of the root, as paths from the root.
fn files(root: &Path, below: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        let kind = entry.file_type()?;
        if LEFT_OUT.iter().any(|left_out| path == Path::new(left_out)) {
            continue;
        }
        if kind.is_dir() {
            found.extend(files(root, &path)?);
        } else if kind.is_file() {
            found.push(path);
        }
    }
    Ok(found)
}

fn put(path: &Path, bytes: &[u8]) {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return;
    }
    fs::create_dir_all(path.parent().expect("a file has a directory")).expect("a directory of the copy");
    fs::write(path, bytes).expect("a file of the copy");
}

/// Copies the permissions: some files are programs.
fn copy_rights(from: &Path, to: &Path) {
    let rights = fs::metadata(from).expect("a file of the sources").permissions();
    if fs::metadata(to).expect("a file of the copy").permissions() != rights {
        fs::set_permissions(to, rights).expect("a file of the copy");
    }
}

fn link_tools(root: &Path, tree: &Path) {
    fs::create_dir_all(tree.join("target")).expect("a directory of the copy");
    for tool in TOOLS {
        let (from, to) = (root.join(tool), tree.join(tool));
        if from.exists() && !to.exists() {
            std::os::unix::fs::symlink(from, to).expect("a link");
        }
    }
}
