//! OpenAPI documents: the commands on documents of others' kinds, and their overlays with the programs that apply, check
//! and read them.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may stop at the first surprise")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

const NOTES: &str = "tests/openapi/notes.yaml";
const CONFIGURATION: &str = "tests/openapi/notes.toml";

fn ifmatch(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ifmatch")).args(arguments).output().expect("the ifmatch program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the program prints UTF-8")
}

/// Returns the output of the program, if it succeeds.
fn printed(arguments: &[&str]) -> String {
    let output = ifmatch(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Runs a program of npm (`make setup-test`), and returns what it prints.
fn node(program: &str, arguments: &[&Path]) -> String {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/node/node_modules/.bin").join(program);
    let output =
        Command::new(&tool).args(arguments).output().unwrap_or_else(|error| panic!("{}: {error}", tool.display()));
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{program}: {said}");
    said
}

#[test]
fn a_configuration_is_made_of_a_document() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let file = directory.path().join("ifmatch.toml");
    let made = printed(&["openapi", "init", NOTES]);
    let expected = fs::read_to_string("tests/openapi/notes-init.toml").expect("the file is there");
    assert_eq!(made, expected, "{made}");
    fs::write(&file, made).expect("the file can be written");
    let checked = printed(&["check", &file.display().to_string(), "--openapi", NOTES]);
    let last: Vec<&str> = checked.lines().rev().take(2).collect();
    assert_eq!(
        last,
        [
            "changeNotes (POST /notes:batch) is not guarded: route \"rest\" (/{*rest}) has policy = \"last-writer-wins\"",
            "tests/openapi/notes.yaml: 5 of 6 operations that change something are guarded",
        ]
    );
}

/// An overlay of the notes, applied by a program that knows nothing of ifmatch.
fn overlaid(directory: &Path) -> PathBuf {
    let (overlay, applied) = (directory.join("overlay.json"), directory.join("notes.json"));
    fs::write(&overlay, printed(&["openapi", "overlay", CONFIGURATION, NOTES])).expect("the file can be written");
    let options = ["--overlayFile", "--output", "--json", "--no-sort"].map(PathBuf::from);
    let [with, to, json, as_it_is] = &options;
    node("openapi-format", &[Path::new(NOTES), with, &overlay, to, &applied, json, as_it_is]);
    applied
}

#[test]
fn an_overlay_makes_a_valid_document() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let applied = overlaid(directory.path());
    let said = node("validate-api", &[&applied]);
    assert!(said.contains("\"valid\": true"), "{said}");
    let document: serde_json::Value =
        fs::read_to_string(&applied).expect("the file is there").parse().expect("it is JSON");
    let put = &document["paths"]["/notes/{id}"]["put"];
    let names = put["parameters"].as_array().expect("a list").len();
    assert_eq!(names, 3, "its own parameter, If-Match, and If-None-Match: {put:#}");
    assert_eq!(document["components"]["responses"]["Note"].get("headers"), None, "others may share the answer");
    let taken = &document["components"]["schemas"]["Problem"]["properties"];
    assert_eq!(taken, &serde_json::json!({"error": {"type": "string"}}), "the document's own");
    let conflict = &document["paths"]["/drawings/{id}"]["put"]["responses"]["409"];
    assert_eq!(conflict["description"], "It is no drawing.");
    let lease = &document["paths"]["/.leases/v2/drawings/{id}"];
    assert_eq!(lease["servers"][0]["url"], "https://notes.example/");
}

#[test]
fn a_generated_client_knows_of_versions_and_leases() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let applied = overlaid(directory.path());
    let types = directory.path().join("notes.ts");
    node("openapi-typescript", &[&applied, Path::new("--output"), &types]);
    let client = directory.path().join("typed_client.ts");
    fs::copy("tests/openapi/typed_client.ts", &client).expect("the file can be copied");
    node("tsc", &[Path::new("--strict"), Path::new("--noEmit"), Path::new("--skipLibCheck"), &client]);
}

#[test]
fn a_document_with_problems_ends_with_78() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let broken = directory.path().join("broken.yaml");
    fs::write(&broken, "openapi: 3.1.0\npaths: {a: {}, /b: {$ref: '#/c'}}\n").expect("the file can be written");
    let broken = broken.display().to_string();
    for arguments in [
        &["openapi", "init", &broken][..],
        &["openapi", "overlay", CONFIGURATION, &broken],
        &["check", CONFIGURATION, "--openapi", &broken],
        &["openapi", "init", "tests/openapi/nowhere.yaml"],
        &["openapi", "overlay", "tests/openapi/nowhere.toml", NOTES],
    ] {
        let output = ifmatch(arguments);
        assert_eq!(output.status.code(), Some(78), "{arguments:?}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
    let reported = text(&ifmatch(&["openapi", "init", &broken]).stderr);
    assert!(
        reported.contains("broken.yaml#/paths/~1b: $ref is \"#/c\", and the document has nothing there"),
        "{reported}"
    );
}
