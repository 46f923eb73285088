//! The list of mutants, and their places in the code.

use std::{fs, ops::Range, path::Path};

use serde::Deserialize;

/// The marks around the text to be replaced, if `find` contains more than that.
const MARKS: [char; 2] = ['«', '»'];

/// A place that is broken on purpose.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    pub name: String,
    /// The path from the root of the repository.
    pub file: String,
    /// The rules of DESIGN, section 3, that the mutant breaks, or a section: `"1"`, `"3, 7"`, `"section 6"`.
    pub rule: String,
    /// The programmer's mistake.
    pub says: String,
    /// The text of the file.
    pub find: String,
    /// The replacement.
    pub put: String,
    #[serde(default)]
    pub kind: Kind,
    /// The position among several equal texts, from 1 on.
    pub nth: Option<usize>,
    /// The judges to ask first: a test target, and filters of its tests.
    #[serde(default)]
    pub judge: Vec<String>,
    /// The reason why no test can find it.
    pub survives: Option<String>,
}

/// The kind of the text.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    #[default]
    Expression,
    Statement,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Room {
    mutant: Vec<Mutant>,
}

impl Mutant {
    /// Returns the rules of DESIGN, section 3, that the mutant breaks, without any sections.
    pub fn rules(&self) -> impl Iterator<Item = &str> {
        self.rule.split(',').map(str::trim).filter(|rule| rule.parse::<u32>().is_ok())
    }
}

/// Returns all mutants, those of each list in the folder.
pub fn all() -> Vec<Mutant> {
    let files = fs::read_dir(super::root().join("tests/mutants")).expect("the folder of the lists");
    let mut lists: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    lists.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    lists.sort();
    lists.iter().flat_map(|path| read(path)).collect()
}

fn read(path: &Path) -> Vec<Mutant> {
    let text = fs::read_to_string(path).expect("the list of a room");
    let room: Room = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    room.mutant
}

/// Returns the place of a mutant's text in its file.
pub fn place(root: &Path, mutant: &Mutant) -> Result<Range<usize>, String> {
    let source = fs::read_to_string(root.join(&mutant.file)).map_err(|error| tell(mutant, &error.to_string()))?;
    place_in(&source, mutant)
}

/// Like [`place`], but in the text of the file.
pub fn place_in(source: &str, mutant: &Mutant) -> Result<Range<usize>, String> {
    let found = mutant.find.trim();
    let (before, within, after) = match found.split_once(MARKS[0]).zip(found.rsplit_once(MARKS[1])) {
        None => ("", found, ""),
        Some(((before, rest), (_, after))) => (before, &rest[..rest.len() - after.len() - MARKS[1].len_utf8()], after),
    };
    let text = [before, within, after].concat();
    let places: Vec<usize> = source.match_indices(&text).map(|(place, _)| place).collect();
    let at = match (mutant.nth, places.as_slice()) {
        (None, [only]) => *only,
        (None, _) => return Err(tell(mutant, &format!("its text is there {} times", places.len()))),
        (Some(nth), places) => *places
            .get(nth.wrapping_sub(1))
            .ok_or_else(|| tell(mutant, &format!("its text is there {} times", places.len())))?,
    };
    Ok(at + before.len()..at + before.len() + within.len())
}

fn tell(mutant: &Mutant, problem: &str) -> String {
    format!("{} ({}): {problem}", mutant.name, mutant.file)
}
