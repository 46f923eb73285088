//! Configurations of small random documents: each is valid, and lists all operations that it leaves unguarded.

use fastrand::Rng;

use super::{ApiDocument, Paths, configuration, coverage, overlay};
use crate::config;

/// How many documents are made.
const DOCUMENTS: u64 = 400;

const SEGMENTS: [&str; 15] = [
    "pets",
    "{id}",
    "toys",
    "{name}.json",
    "send",
    "search",
    "batch",
    "lock",
    "unlock",
    "v{n}",
    "{a}...{b}",
    "{path}",
    ":x",
    "mine",
    "{id}:go",
];
const METHODS: [&str; 6] = ["get", "put", "patch", "post", "delete", "head"];
const SERVERS: [&str; 5] = ["", "/v1", "https://a.example/api", "http://127.0.0.1:8080", "http://{host}/{base}/"];
const SCHEMAS: [&str; 7] = [
    "{type: array, items: {}}",
    "{type: array, items: {properties: {id: {type: integer}}}}",
    "{properties: {id: {type: integer}, version: {type: integer}}}",
    "{$ref: '#/components/schemas/Loop'}",
    "{properties: {_rev: {type: string}, name: {type: string}}}",
    "{type: string, format: binary}",
    "{}",
];
const MEDIA_TYPES: [&str; 5] =
    ["application/json", "multipart/form-data", "text/event-stream", "application/xml", "application/octet-stream"];

fn one<'a>(random: &mut Rng, all: &[&'a str]) -> &'a str {
    random.choice(all).copied().unwrap_or_default()
}

fn content(random: &mut Rng) -> String {
    let (media_type, schema) = (one(random, &MEDIA_TYPES), one(random, &SCHEMAS));
    format!("content: {{{media_type}: {{schema: {schema}}}}}")
}

fn operation(random: &mut Rng) -> String {
    let headers = if random.bool() { "headers: {ETag: {schema: {type: string}}}, " } else { "" };
    let parameters = if random.u8(..4) == 0 { "parameters: [{name: If-Match, in: header}], " } else { "" };
    let (status, answer, request) = (one(random, &["200", "201", "204", "2XX"]), content(random), content(random));
    format!(
        "{{{parameters}requestBody: {{{request}}}, responses: {{'{status}': {{description: d, {headers}{answer}}}}}}}"
    )
}

/// A document of a few paths, in which anything may stand beside anything.
fn document(random: &mut Rng) -> String {
    let mut text = format!("openapi: 3.1.0\nservers: [{{url: '{}'}}]\npaths:\n", one(random, &SERVERS));
    let mut seen = Vec::new();
    for _ in 0..random.usize(1..8) {
        let segments = 0..random.usize(1..5);
        let path: String = segments.flat_map(|_| ["/", one(random, &SEGMENTS)]).collect();
        if seen.contains(&path) {
            continue;
        }
        text.extend(["  '", &path, "':\n"]);
        let methods = METHODS.iter().filter(|_| random.bool()).collect::<Vec<_>>();
        for method in methods {
            text.extend(["    ", method, ": ", &operation(random), "\n"]);
        }
        text.push_str("    parameters: []\n");
        seen.push(path);
    }
    text + "components: {schemas: {Loop: {allOf: [{$ref: '#/components/schemas/Loop'}]}}}\n"
}

/// A configuration whose reader has followed all that it suggests.
fn with_suggestions(made: &str) -> String {
    let mut followed = made.replace("# policy = \"pessimistic\"\n", "policy = \"pessimistic\"\n");
    let (_, nexts) = made.split_once("# What could be added:").unwrap_or_default();
    for (collection, keys) in nexts.lines().filter_map(|line| line.strip_prefix("#   ")?.split_once(": ")) {
        let (members, index) = keys.split_once(", ").expect("two keys");
        let path = |path: &str| format!("path = {path}\n");
        let (_, member) = members.split_once(" = ").expect("a key");
        let of_collection = path(&format!("{collection:?}"));
        followed = followed.replace(&of_collection, &format!("{of_collection}{members}\n{index}\n"));
        let lease = "policy = \"pessimistic\"\nlease.acquire_on_read = true\n";
        let is_locked = followed.contains(&format!("{}policy", path(member)));
        followed = followed.replace(&path(member), &format!("{}{}", path(member), if is_locked { "" } else { lease }));
    }
    followed
}

#[test]
fn each_configuration_is_valid_and_tells_of_all_that_it_leaves_unguarded() {
    let first = std::env::var("IFMATCH_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for seed in first..first + DOCUMENTS {
        let text = document(&mut Rng::with_seed(seed));
        let document =
            ApiDocument::parse("d", &text).unwrap_or_else(|problems| panic!("seed {seed}: {problems}\n{text}"));
        let paths = Paths::of(&document).unwrap_or_else(|problems| panic!("seed {seed}: {problems}\n{text}"));
        let made = configuration(&paths);
        let loaded = config::parse("c", &made);
        let loaded = loaded.unwrap_or_else(|problems| panic!("seed {seed}: {problems}\n{text}\n{made}"));
        let followed = with_suggestions(&made);
        config::parse("c", &followed).unwrap_or_else(|problems| panic!("seed {seed}: {problems}\n{text}\n{followed}"));
        let (_, open) = made.split_once("# What the document does not tell:").unwrap_or_default();
        for uncovered in coverage(&paths, &loaded.config.routes).uncovered {
            let line = format!("#   {}\n", uncovered.operation);
            assert!(open.contains(&line), "seed {seed}: {uncovered:?}\n{text}\n{made}");
        }
        let overlay: serde_json::Value = overlay(&paths, &loaded.config.routes).parse().expect("it is JSON");
        assert_eq!(overlay["overlay"], "1.0.0", "seed {seed}");
    }
}
