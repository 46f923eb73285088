//! The files below a folder of the backend, ordered by name and cut into pages.
//!
//! # Design
//!
//! *Who fetches the folders?* The caller. [`Walk::step`] names the next one, and [`Walk::add`] takes its entries.
//!
//! *Why is a folder ordered as if its name ended with a slash?* All files in it follow its name directly then. So the
//! order of the walk is the order of the files' whole names.

use std::collections::{BTreeMap, VecDeque};

use http::HeaderMap;
use serde::Deserialize;

use super::metadata::ends_with;
use crate::core::tags::http_date::HttpDate;

/// The largest number of folders that one page is made of. A page that needs more ends early.
pub const FOLDERS_MAX: usize = 100;

/// The files, or the folders, that a client wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The beginning of each name.
    pub prefix: String,
    /// True if a folder stands for all files in it.
    pub shows_folders: bool,
    /// The name that the page begins with, or would begin with.
    pub from: String,
    /// The largest number of items on the page.
    pub max_items: usize,
    /// True if the items are the folders alone.
    pub has_only_folders: bool,
    /// True if each item is read too: an index shows neither its tag nor its lease and metadata.
    pub reads_items: bool,
}

/// A file or a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The name below the listed folder. That of a folder ends with a slash.
    pub name: String,
    /// The length of a file in bytes.
    pub len: u64,
    /// The modification date.
    pub modified: Option<HttpDate>,
    /// The fields by which a read of the file describes it, if it was read.
    pub fields: Option<HeaderMap>,
    /// The metadata that the read has shown: each name with its value.
    pub metadata: Vec<(String, String)>,
}

impl Item {
    /// True if the entry is a folder.
    pub fn is_folder(&self) -> bool {
        self.name.ends_with('/')
    }
}

/// A page of items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The items, ordered by name.
    pub items: Vec<Item>,
    /// The name that the next page begins with, if there is a next page.
    pub next: Option<String>,
}

/// A step on the way to a page.
#[derive(Debug, PartialEq, Eq)]
pub enum WalkStep {
    /// The entries of this folder are needed.
    Visit(String),
    /// The page is complete.
    Done(Page),
    /// The page cannot be made: its first item is below more folders than a page is made of.
    TooDeep,
}

/// An unfinished page.
#[derive(Debug)]
pub struct Walk {
    listing: Listing,
    /// The folder of all items, until it is visited.
    start: Option<String>,
    /// The entries that follow, if the page has room.
    pending: VecDeque<Item>,
    /// The first item for which there was no room.
    cut: Option<String>,
    items: Vec<Item>,
    folders_left: usize,
}

impl Walk {
    /// Begins a page.
    pub fn new(listing: Listing) -> Self {
        let folder = listing.prefix.rfind('/').map(|end| listing.prefix.split_at(end + 1).0.to_owned());
        Self {
            start: Some(folder.unwrap_or_default()),
            pending: VecDeque::new(),
            cut: None,
            items: Vec::new(),
            folders_left: FOLDERS_MAX,
            listing,
        }
    }

    /// Returns the next folder to visit, or the page.
    pub fn step(&mut self) -> WalkStep {
        if let Some(folder) = self.start.take() {
            return WalkStep::Visit(folder);
        }
        while self.items.len() < self.listing.max_items {
            let Some(item) = self.pending.pop_front() else { break };
            if self.listing.shows_folders || !item.is_folder() {
                self.items.push(item);
            } else if self.folders_left == 0 && item.name <= self.listing.from {
                return WalkStep::TooDeep;
            } else if self.folders_left == 0 {
                return self.done(Some(item.name));
            } else {
                self.folders_left -= 1;
                return WalkStep::Visit(item.name);
            }
        }
        let next = self.pending.pop_front().map(|item| item.name).or(self.cut.take());
        self.done(next)
    }

    fn done(&mut self, next: Option<String>) -> WalkStep {
        WalkStep::Done(Page { items: std::mem::take(&mut self.items), next })
    }

    /// Adds the entries of a folder that was visited.
    pub fn add(&mut self, folder: &str, entries: Vec<IndexEntry>) {
        let items = entries.into_iter().map(|entry| entry.item(folder));
        let mut items: Vec<Item> = items.filter(|item| self.is_wanted(item)).collect();
        items.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        for item in items.into_iter().rev() {
            self.pending.push_front(item);
        }
        let room = self.listing.max_items.saturating_sub(self.items.len());
        if let Some(item) = self.pending.get(room) {
            self.cut = Some(item.name.clone());
            self.pending.truncate(room);
        }
    }

    /// True if an item, or a file in it, belongs on this page or a later one.
    fn is_wanted(&self, item: &Item) -> bool {
        let Listing { prefix, shows_folders, from, has_only_folders, .. } = &self.listing;
        if *has_only_folders && !item.is_folder() {
            return false;
        }
        let holds_start = item.is_folder() && !shows_folders && from.starts_with(&item.name);
        item.name.starts_with(prefix) && (item.name >= *from || holds_start)
    }
}

/// An entry of the index of a folder, as nginx writes it (`autoindex_format json`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct IndexEntry {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    mtime: String,
    #[serde(default)]
    size: u64,
}

impl IndexEntry {
    fn item(self, folder: &str) -> Item {
        let slash = if self.kind == "directory" { "/" } else { "" };
        let modified = HttpDate::parse(self.mtime.as_bytes());
        Item {
            name: [folder, &self.name, slash].concat(),
            len: self.size,
            modified,
            fields: None,
            metadata: Vec::new(),
        }
    }
}

/// Reads the index of a folder. A name that is not UTF-8 is left out, because no client can spell it, and so is one that
/// would lead to another folder.
pub fn read_index(json: &[u8]) -> Option<Vec<IndexEntry>> {
    let entries: Vec<IndexEntry> = serde_json::from_str(&String::from_utf8_lossy(json)).ok()?;
    let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(['/', char::REPLACEMENT_CHARACTER]);
    Some(entries.into_iter().filter(|entry| is_name(&entry.name)).collect())
}

/// Leaves out the documents that keep metadata. A change of its metadata is a change of the file, so the file has the
/// later of both dates.
pub fn without_documents(entries: Vec<IndexEntry>, suffix: &str) -> Vec<IndexEntry> {
    let is_document = |entry: &IndexEntry| entry.kind != "directory" && ends_with(entry.name.as_bytes(), suffix);
    let (documents, mut files): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_document);
    let changed: BTreeMap<&str, &str> = documents
        .iter()
        .filter_map(|document| Some((document.name.get(..document.name.len() - suffix.len())?, &*document.mtime)))
        .collect();
    let date = |text: &str| HttpDate::parse(text.as_bytes());
    for file in &mut files {
        if let Some(later) = changed.get(&*file.name).filter(|later| date(later) > date(&file.mtime)) {
            file.mtime = (*later).to_owned();
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::{collection::btree_set, prelude::*};

    use super::*;

    /// The entries of a folder among these files.
    fn index(files: &BTreeSet<String>, folder: &str) -> Vec<IndexEntry> {
        let below = files.iter().filter_map(|file| file.strip_prefix(folder));
        let names: BTreeSet<(String, &str)> = below
            .map(|rest| match rest.split_once('/') {
                Some((name, _)) => (name.to_owned(), "directory"),
                None => (rest.to_owned(), "file"),
            })
            .collect();
        let entry =
            |(name, kind): (String, &str)| IndexEntry { name, kind: kind.to_owned(), mtime: String::new(), size: 1 };
        // A server may have any order.
        names.into_iter().rev().map(entry).collect()
    }

    fn page(files: &BTreeSet<String>, listing: Listing) -> (Page, Vec<String>) {
        let (mut walk, mut visited) = (Walk::new(listing), Vec::new());
        loop {
            match walk.step() {
                WalkStep::Visit(folder) => {
                    walk.add(&folder, index(files, &folder));
                    visited.push(folder);
                }
                WalkStep::Done(page) => return (page, visited),
                WalkStep::TooDeep => panic!("{visited:?}"),
            }
        }
    }

    fn all(files: &BTreeSet<String>, mut listing: Listing) -> Vec<String> {
        let mut names = Vec::new();
        loop {
            let (page, _) = page(files, listing.clone());
            assert!(page.items.len() <= listing.max_items);
            names.extend(page.items.into_iter().map(|item| item.name));
            match page.next {
                Some(next) => {
                    assert!(next > listing.from, "each page begins later than the one before");
                    listing.from = next;
                }
                None => return names,
            }
        }
    }

    fn files(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn of(prefix: &str, shows_folders: bool, max_items: usize) -> Listing {
        Listing { prefix: prefix.to_owned(), shows_folders, max_items, ..Listing::default() }
    }

    #[test]
    fn files_are_ordered_by_their_whole_names() {
        let files = files(&["a-b", "a/c", "a/d/e", "a0", "b"]);
        assert_eq!(all(&files, of("", false, 10)), ["a-b", "a/c", "a/d/e", "a0", "b"]);
        assert_eq!(all(&files, of("", true, 10)), ["a-b", "a/", "a0", "b"]);
        assert_eq!(all(&files, of("a/", true, 10)), ["a/c", "a/d/"]);
        assert_eq!(all(&files, of("a", true, 10)), ["a-b", "a/", "a0"]);
        let folders = Listing { has_only_folders: true, ..of("", true, 1) };
        assert_eq!(all(&files, folders), ["a/"]);
    }

    #[test]
    fn only_the_folders_of_a_page_are_visited() {
        let files = files(&["a/1", "b/1", "b/2", "c/1"]);
        let (first, visited) = page(&files, of("", false, 2));
        assert_eq!((first.next.as_deref(), visited), (Some("b/2"), ["", "a/", "b/"].map(str::to_owned).to_vec()));
        let rest = Listing { from: "b/2".to_owned(), ..of("", false, 2) };
        assert_eq!(page(&files, rest).1, ["", "b/", "c/"]);
        assert_eq!(page(&files, of("b/", false, 10)).1, ["b/"]);
    }

    #[test]
    fn a_page_of_many_folders_ends_early() {
        let files: BTreeSet<String> = (0..FOLDERS_MAX + 5).map(|number| format!("{number:03}/file")).collect();
        let (first, visited) = page(&files, of("", false, 5_000));
        assert_eq!((first.items.len(), visited.len()), (FOLDERS_MAX, FOLDERS_MAX + 1));
        assert_eq!(all(&files, of("", false, 5_000)).len(), FOLDERS_MAX + 5);
    }

    #[test]
    fn folders_that_are_nested_too_deeply_are_no_endless_list() {
        let deep = format!("{}file", "a/".repeat(FOLDERS_MAX + 1));
        let files = files(&[&deep]);
        let (first, _) = page(&files, of("", false, 10));
        let next = first.next.expect("a page that ends early");
        assert_eq!((first.items.len(), next.as_str()), (0, "a/".repeat(FOLDERS_MAX + 1).as_str()));
        let mut walk = Walk::new(Listing { from: next, ..of("", false, 10) });
        loop {
            match walk.step() {
                WalkStep::Visit(folder) => walk.add(&folder, index(&files, &folder)),
                last => return assert_eq!(last, WalkStep::TooDeep),
            }
        }
    }

    #[test]
    fn an_index_is_read_as_nginx_writes_it() {
        let json = b"[\n{ \"name\":\"d\", \"type\":\"directory\", \"mtime\":\"Sun, 06 Nov 1994 08:49:37 GMT\" },\n\
                     { \"name\":\"\xff\", \"type\":\"file\" },\n\
                     { \"name\":\"..\", \"type\":\"directory\" },\n\
                     { \"name\":\"f\", \"type\":\"file\", \"mtime\":\"Sun, 06 Nov 1994 08:49:37 GMT\", \"size\":3 }\n]";
        let items: Vec<Item> = read_index(json).unwrap().into_iter().map(|entry| entry.item("x/")).collect();
        let modified = HttpDate::parse(b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert!(modified.is_some());
        let item = |name: &str, len| Item { name: name.to_owned(), len, modified, fields: None, metadata: Vec::new() };
        assert_eq!(items, [item("x/d/", 0), item("x/f", 3)]);
        assert_eq!(read_index(b"<html>"), None);
    }

    #[test]
    fn documents_of_metadata_are_no_files_and_date_theirs() {
        let entry = |name: &str, kind: &str, second: u32| IndexEntry {
            name: name.to_owned(),
            kind: kind.to_owned(),
            mtime: format!("Sun, 06 Nov 1994 08:49:{second} GMT"),
            size: 1,
        };
        let entries = vec![
            entry("a", "file", 10),
            entry("a.meta", "file", 12),
            entry("b", "file", 14),
            entry("b.META", "file", 13),
            entry("c.meta", "directory", 11),
        ];
        let expected = vec![entry("a", "file", 12), entry("b", "file", 14), entry("c.meta", "directory", 11)];
        assert_eq!(without_documents(entries, ".meta"), expected);
    }

    proptest! {
        /// Pages of any size together show each file once, in order, for any names.
        #[test]
        fn pages_miss_nothing(
            names in btree_set("[a-c]{1,2}(-|\\.)?(/[a-c](-|\\.)?){0,3}", 0..30),
            prefix in "([a-c]/?){0,2}",
            max_items in 1_usize..6,
            shows_folders: bool,
        ) {
            // A name cannot be that of a file and of a folder.
            let is_folder = |name: &String| names.iter().any(|other| other.starts_with(&format!("{name}/")));
            let files: BTreeSet<String> = names.iter().filter(|name| !is_folder(name)).cloned().collect();
            let wanted = files.iter().filter(|file| file.starts_with(&prefix));
            let shown = |file: &String| match file[prefix.len()..].split_once('/') {
                Some((folder, _)) if shows_folders => format!("{prefix}{folder}/"),
                _ => file.clone(),
            };
            let mut expected: Vec<String> = wanted.map(shown).collect();
            expected.dedup();
            prop_assert_eq!(all(&files, of(&prefix, shows_folders, max_items)), expected);
        }
    }
}
