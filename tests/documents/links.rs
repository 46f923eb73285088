//! Links between files of the repository, and the book's list of pages.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::pages::{all, read, root};

/// The links of a page, and the anchors of its headings.
struct Outline {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

fn outline(text: &str) -> Outline {
    let (mut links, mut anchors) = (Vec::new(), BTreeSet::new());
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.push(dest_url.into_string());
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => anchors.extend(heading.take().map(|text| anchor(&text))),
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            _ => {}
        }
    }
    Outline { links, anchors }
}

/// The anchor that code hosts and mdBook make of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.flat_map(char::to_lowercase).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// Takes `..` out of a path.
fn without_detours(path: &Path) -> PathBuf {
    let mut direct = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                direct.pop();
            }
            other => direct.push(other),
        }
    }
    direct
}

/// The path from the root of the repository and the anchor that a link on a page leads to.
fn target(page: &Path, link: &str) -> (PathBuf, Option<String>) {
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor.to_owned())));
    let folder = page.parent().expect("a page has a folder");
    let path = if file.is_empty() { page.to_owned() } else { without_detours(&folder.join(file)) };
    (path, anchor)
}

#[test]
fn links_lead_somewhere() {
    let outlines: BTreeMap<PathBuf, Outline> = all().into_iter().map(|page| (page.path, outline(&page.text))).collect();
    let (mut dead, mut followed) = (Vec::new(), 0);
    for (page, outline) in &outlines {
        for link in outline.links.iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            followed += 1;
            let (path, anchor) = target(page, link);
            let is_there = root().join(&path).exists();
            let has = |anchor: &String| outlines.get(&path).is_some_and(|target| target.anchors.contains(anchor));
            if !is_there || !anchor.as_ref().is_none_or(has) {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(followed > 100, "only {followed} links were found");
    assert!(dead.is_empty(), "links that lead nowhere:\n{}", dead.join("\n"));
}

#[test]
fn the_book_has_each_page_once() {
    let mut listed = outline(&read("docs/SUMMARY.md")).links;
    listed.sort();
    let pages = all().into_iter().filter_map(|page| page.path.strip_prefix("docs").ok().map(Path::to_owned));
    let mut pages: Vec<String> = pages.map(|page| page.to_string_lossy().into_owned()).collect();
    pages.retain(|page| page != "SUMMARY.md");
    pages.sort();
    assert_eq!(listed, pages);
}

#[test]
fn anchors_are_those_of_code_hosts() {
    assert_eq!(anchor("Crates that are there twice"), "crates-that-are-there-twice");
    assert_eq!(anchor("`\"header:NAME\"` and more"), "headername-and-more");
    assert_eq!(outline("# A `b`\n\n[c](d.md#e)").links, ["d.md#e"]);
}
