//! The names that the pages use are names of something that exists.

use crate::pages::{Page, all, page, root};

/// The words in backticks, outside blocks.
fn words(page: &Page) -> impl Iterator<Item = &str> {
    let mut is_open = false;
    let prose = page.text.lines().filter(move |line| {
        let is_fence = line.starts_with("```");
        is_open ^= is_fence;
        !is_open && !is_fence
    });
    prose.flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Asserts that each word that is of a kind is known.
fn assert_known(is_of_kind: impl Fn(&str) -> bool, is_known: impl Fn(&str) -> bool) {
    let pages = all();
    let found: Vec<(&Page, &str)> = pages
        .iter()
        .flat_map(|page| words(page).map(move |word| (page, word)))
        .filter(|(_, w)| is_of_kind(w))
        .collect();
    assert_ne!(found.len(), 0, "no page has such a word");
    let unknown: Vec<_> = found.iter().filter(|(_, word)| !is_known(word)).collect();
    let unknown: Vec<_> = unknown.iter().map(|(page, word)| format!("{}: {word}", page.path.display())).collect();
    assert_eq!(unknown, [""; 0]);
}

#[test]
fn files_that_are_linked_exist() {
    let mut missing = Vec::new();
    for page in all() {
        let targets = page.text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
        let local = targets.filter(|target| !target.contains("://")).filter_map(|target| target.split('#').next());
        let folder = page.path.parent().expect("a folder");
        missing.extend(
            local
                .filter(|target| !folder.join(target).exists())
                .map(|target| format!("{}: {target}", page.path.display())),
        );
    }
    assert_eq!(missing, [""; 0]);
}

#[test]
fn metrics_are_those_of_the_reference() {
    // Prometheus has no dots in its names.
    let reference = page("docs/telemetry.md").text.replace('.', "_");
    let is_known = |word: &str| {
        let name = word.trim_end_matches("_total").trim_end_matches("_seconds");
        reference.contains(&format!("`{name}`"))
    };
    // A name with a dot is that of a package.
    assert_known(|word| word.starts_with("ifmatch_") && !word.contains('.'), is_known);
}

#[test]
fn alerts_exist() {
    let alerts = page("deploy/prometheus/alerts.yaml").text;
    let is_alert = |word: &str| word.starts_with("Ifmatch") && word.chars().all(char::is_alphanumeric);
    assert_known(is_alert, |word| alerts.contains(&format!("alert: {word}\n")));
}

#[test]
fn keys_are_those_of_the_configuration() {
    let keys = page("config/ifmatch.toml").text;
    let key = |word: &str| {
        let (key, _) = word.split_once(" = ")?;
        let is_key = key.chars().all(|letter| letter == '_' || letter.is_ascii_lowercase());
        is_key.then(|| format!("{key} = "))
    };
    assert_known(|word| key(word).is_some(), |word| key(word).is_some_and(|key| keys.contains(&key)));
}

#[test]
fn files_of_the_repository_that_are_named_exist() {
    let folders = ["config/", "deploy/", "src/", "tests/", "docs/", "benches/", "fuzz/"];
    let is_path = |word: &str| folders.iter().any(|folder| word.starts_with(folder)) && !word.contains(['*', '{', ' ']);
    assert_known(is_path, |word| root().join(word).exists());
}
