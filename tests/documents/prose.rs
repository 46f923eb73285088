//! English: phrases that no document has, each with its replacement, and the longest sentence.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use syn::{
    Attribute, ItemMod, LitStr, Meta,
    visit::{self, Visit},
};

use crate::pages::{Page, all, read, sources};

/// The phrases of `phrases.txt`.
static PHRASES: LazyLock<Vec<Phrase>> = LazyLock::new(phrases);
/// The longest sentence, in words.
const MAX_WORDS: usize = 25;

/// A phrase that no document has, and its replacement.
struct Phrase {
    words: Vec<&'static str>,
    instead: &'static str,
}

fn phrases() -> Vec<Phrase> {
    let lines = include_str!("phrases.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let phrase = |line: &'static str| {
        let (words, instead) = line.split_once(" => ").unwrap_or_else(|| panic!("{line:?} has no replacement"));
        Phrase { words: words.split_whitespace().collect(), instead }
    };
    lines.map(phrase).collect()
}

/// The paragraphs, list items, headings and table cells of a page. A piece of code counts as one word.
fn passages(text: &str) -> Vec<String> {
    let (mut passages, mut passage, mut is_code) = (Vec::new(), String::new(), false);
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => is_code = true,
            Event::End(TagEnd::CodeBlock) => is_code = false,
            Event::Text(part) if !is_code => passage.push_str(&part),
            Event::Code(_) => passage.push_str("Code"),
            Event::SoftBreak | Event::HardBreak => passage.push(' '),
            Event::Start(Tag::Item | Tag::Paragraph | Tag::Heading { .. } | Tag::TableCell)
            | Event::End(TagEnd::Item | TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::TableCell) => {
                passages.push(std::mem::take(&mut passage));
            }
            _ => {}
        }
    }
    passages.push(passage);
    passages.retain(|passage| !passage.trim().is_empty());
    passages
}

/// The sentences of a passage. A colon ends one too.
fn sentences(passage: &str) -> impl Iterator<Item = &str> {
    [". ", "? ", ": "]
        .iter()
        .fold(vec![passage], |parts, end| parts.iter().flat_map(|part| part.split(end)).collect())
        .into_iter()
}

/// The words of a sentence in lower case, without the marks around them.
fn words(sentence: &str) -> Vec<String> {
    let bare = |word: &str| word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
    sentence.split_whitespace().map(bare).filter(|word| !word.is_empty()).collect()
}

fn has(words: &[String], phrase: &Phrase) -> bool {
    words.windows(phrase.words.len()).any(|window| window == phrase.words)
}

/// All that is wrong with a page.
fn problems(page: &Path, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for passage in passages(text) {
        for sentence in sentences(&passage) {
            let words = words(sentence);
            for phrase in PHRASES.iter().filter(|phrase| has(&words, phrase)) {
                let found = phrase.words.join(" ");
                problems.push(format!("{}: {found:?}: write {}: {sentence:?}", page.display(), phrase.instead));
            }
            if words.len() > MAX_WORDS {
                problems.push(format!("{}: {} words: {sentence:?}", page.display(), words.len()));
            }
        }
    }
    problems
}

/// The texts for people in a source file: string literals of several words. Comments, attributes and unit tests have none.
#[derive(Default)]
struct Messages(Vec<String>);

impl<'ast> Visit<'ast> for Messages {
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        // The message of an error type.
        if let Meta::List(list) = &attribute.meta
            && attribute.path().is_ident("error")
            && let Ok(text) = list.parse_args::<LitStr>()
        {
            self.visit_lit_str(&text);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if module.ident != "tests" {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        self.0.extend(Some(text.value()).filter(|text| text.split_whitespace().count() > 3));
    }
}

/// The source files with their messages.
fn messages() -> Vec<(PathBuf, Vec<String>)> {
    let found = sources().into_iter().map(|path| {
        let mut messages = Messages::default();
        messages.visit_file(&syn::parse_file(&read(&path)).expect("Rust"));
        (path, messages.0)
    });
    found.collect()
}

#[test]
fn messages_read_well() {
    let messages = messages();
    let all = messages.iter().flat_map(|(path, texts)| texts.iter().flat_map(|text| problems(path, text)));
    let problems: Vec<String> = all.collect();
    assert!(messages.iter().map(|(_, texts)| texts.len()).sum::<usize>() > 300, "the messages are not found");
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

/// True if a page is the first page or one of the book. The others record history, or are quoted by tools.
fn is_for_users(page: &Page) -> bool {
    page.path == Path::new("README.md") || page.path.starts_with("docs")
}

/// The comments of the configuration's reference, without the entries between them. A line of a table is a passage.
fn reference() -> String {
    let text = read(Path::new("config/ifmatch.toml"));
    let comment = |line: &str| match line.strip_prefix("# ") {
        None => String::new(),
        Some(row) if row.starts_with("  ") && !row.starts_with("   ") => format!("\n{}", row.trim_start()),
        Some(text) => text.trim_start_matches([' ', '-']).to_owned(),
    };
    text.lines().map(comment).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_reference_reads_well() {
    let problems = problems(Path::new("config/ifmatch.toml"), &reference());
    assert!(reference().len() > 30_000, "the comments are not found");
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn documents_read_well() {
    let pages = all().into_iter().filter(is_for_users);
    let problems: Vec<String> = pages.flat_map(|page| problems(&page.path, &page.text)).collect();
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn each_phrase_is_found() {
    for phrase in PHRASES.iter() {
        let text = format!("A line with\n\n* **{}** in it.\n", phrase.words.join("\n"));
        assert!(!problems(Path::new("page.md"), &text).is_empty(), "{text}");
    }
}

#[test]
fn long_sentences_are_found_and_code_is_not_read() {
    let long = "word ".repeat(MAX_WORDS + 1);
    assert_eq!(problems(Path::new("page.md"), &format!("| a |\n|---|\n| {long} |\n")).len(), 1);
    assert_eq!(problems(Path::new("page.md"), &format!("{long}\n")).len(), 1);
    assert_eq!(
        problems(Path::new("page.md"), &format!("```text\n{long}\n```\n\n`{long}` {}.", "b ".repeat(MAX_WORDS - 1))),
        [""; 0]
    );
}
