//! The boundaries between modules (DESIGN, section 10), read from the source as text.
//!
//! Each rule is a row of a table below. A row that is in the way of a good change is changed with it; the reason stands
//! in the row.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

mod imports;
mod rules;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Code in these places must not contain these words.
struct Wall {
    /// Prefixes of paths, from the root of the repository.
    inside: &'static [&'static str],
    /// Prefixes of paths for which it is allowed all the same.
    except: &'static [&'static str],
    /// The texts that must not stand there. One that begins with a letter counts only at the beginning of a word.
    forbidden: &'static [&'static str],
    because: &'static str,
}

const WALLS: &[Wall] = &[
    Wall {
        inside: &["src/core/", "src/dialect/", "src/openapi/"],
        except: &[],
        // Addresses are values; what connects or looks names up is not.
        forbidden: &[
            "async fn",
            "async move",
            ".await",
            "tokio::",
            "pingora",
            "moka::",
            "TcpStream",
            "TcpListener",
            "UdpSocket",
            "ToSocketAddrs",
        ],
        because: "the core waits for nothing and touches no network",
    },
    Wall {
        inside: &["src/core/", "src/dialect/", "src/openapi/"],
        except: &[],
        // The type SystemTime alone is a value: `httpdate` speaks it.
        forbidden: &["Instant", "SystemTime::now", ".elapsed()", "getrandom", "rustix::"],
        because: "the core is given the time and random numbers",
    },
    Wall {
        inside: &["src/core/", "src/dialect/", "src/openapi/"],
        except: &[],
        forbidden: &["std::fs", "fs::", "std::io", "io::", "tempfile::", "tracing::", "log::", "println!", "eprintln!"],
        because: "the core touches no file and logs nothing",
    },
    Wall {
        inside: &["src/store/"],
        except: &[],
        forbidden: &["http::", "pingora"],
        because: "a store knows records, and no HTTP",
    },
    Wall {
        inside: &["src/"],
        except: &[
            "src/body",
            "src/upstream",
            "src/guard",
            "src/service",
            "src/downstream",
            "src/proxy",
            "src/admin",
            "src/server",
            "src/cli",
            "src/patience.rs",
            "src/testing",
            "src/tls/upstream.rs",
        ],
        forbidden: &["pingora"],
        because: "the framework stays where requests are carried",
    },
    Wall {
        inside: &["src/"],
        except: &["src/downstream/"],
        forbidden: &[".write_response_header", ".write_response_body"],
        because: "`downstream::respond` is the one writer of local responses; a relay writes the upstream's",
    },
    Wall {
        inside: &["src/guard/", "src/service/"],
        except: &[],
        forbidden: &["Session"],
        because: "the guard takes a client and gives an answer, so that a simulation can drive it",
    },
    Wall {
        inside: &["src/guard/"],
        // Tests drive whole services through the guard.
        except: &[
            "src/guard/testing/",
            "src/guard/rights_tests",
            "src/guard/staged_block_tests",
            "src/guard/dead_owner",
        ],
        forbidden: &["azure", "Azure", "blob", "Blob", "Block", "blocks", "metadata", "Metadata", "container"],
        because: "the guard has its verbs, and no operation of any service",
    },
    Wall {
        inside: &["src/"],
        except: &["src/dialect/mod.rs"],
        forbidden: &["Dialect::Native", "Dialect::S3", "Dialect::Azure", "Dialect::Toy"],
        because: "only `dialect/mod.rs` asks which dialect a route speaks; a grammar, or its data, tells all others",
    },
    Wall {
        inside: &["src/"],
        except: &[],
        forbidden: &["PoisonError"],
        because: "no panic poisons a mutex of `parking_lot`, so there is no other kind",
    },
    Wall {
        inside: &["src/"],
        except: &[],
        forbidden: &["respond_error", "write_error_response"],
        because: "pingora's own error answers close the connection and are no problem documents",
    },
    Wall {
        inside: &["src/", "tests/"],
        except: &[],
        forbidden: &["todo!", "unimplemented!", "#[ignore"],
        because: "what is not done is not there",
    },
];

/// The texts that must stand nowhere in these places, not even in a comment.
const TRACES: &[&str] = &["TODO", "FIXME", "/home/", "/root/", "/Users/", "\"/tmp/"];

/// The longest source file, in lines.
const LINES_MAX: usize = 400;

#[test]
fn walls_stand() {
    let mut breaches = Vec::new();
    for (path, text) in sources(&["src", "tests"]) {
        let code = code_of(&text);
        for wall in WALLS.iter().filter(|wall| wall.holds_in(&path)) {
            for (number, line) in (1..).zip(code.lines()) {
                let found = wall.forbidden.iter().filter(|word| mentions(line, word));
                breaches.extend(found.map(|word| format!("{path}:{number}: `{word}`: {}", wall.because)));
            }
        }
    }
    assert_none(&breaches);
}

impl Wall {
    fn holds_in(&self, path: &str) -> bool {
        let has = |prefixes: &[&str]| prefixes.iter().any(|prefix| path.starts_with(prefix));
        has(self.inside) && !has(self.except)
    }
}

#[test]
fn source_files_are_short() {
    let lengths = sources(&["src"]).into_iter().map(|(path, text)| (path, text.lines().count()));
    let long = lengths.filter(|(_, lines)| *lines > LINES_MAX);
    assert_none(&long.map(|(path, lines)| format!("{path}:{lines}: more than {LINES_MAX} lines")).collect::<Vec<_>>());
}

#[test]
fn nothing_is_left_over() {
    let mut traces = Vec::new();
    // This file has to name what it looks for.
    for (path, text) in sources(&["src", "tests"]).into_iter().filter(|(path, _)| path != "tests/architecture/main.rs")
    {
        for (number, line) in (1..).zip(text.lines()) {
            let found = TRACES.iter().filter(|trace| mentions(line, trace));
            traces.extend(found.map(|trace| format!("{path}:{number}: `{trace}` was left over")));
        }
    }
    assert_none(&traces);
}

#[test]
fn every_dependency_has_a_reason() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let mut without_reason = Vec::new();
    let (mut among_dependencies, mut above) = (false, "");
    for (number, line) in (1..).zip(manifest.lines()) {
        if let Some(table) = line.strip_prefix('[') {
            among_dependencies = table.trim_end().ends_with("dependencies]");
        } else if among_dependencies && names_a_key(line) && !above.starts_with("# ") {
            without_reason.push(format!("Cargo.toml:{number}: no line above says why it is needed: {line}"));
        }
        above = line;
    }
    assert_none(&without_reason);
}

/// True if a line of TOML begins a value, rather than being a comment, empty, or the rest of a value.
fn names_a_key(line: &str) -> bool {
    line.starts_with(|first: char| first.is_ascii_alphanumeric()) && line.contains('=')
}

#[track_caller]
fn assert_none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files under these directories: path from the root, and text.
fn sources(directories: &[&str]) -> Vec<(String, String)> {
    let mut pending: Vec<PathBuf> = directories.iter().map(|directory| root().join(directory)).collect();
    let mut files = Vec::new();
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
                files.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files.sort();
    assert!(!files.is_empty(), "there are Rust files in {directories:?}");
    files
}

/// True if a line contains a word, not counting places where a longer name only ends in it.
fn mentions(line: &str, word: &str) -> bool {
    let in_name = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(at, _)| {
        let begins_name = word.starts_with(in_name);
        !begins_name || !line[..at].ends_with(in_name)
    })
}

/// The same lines without what comments and texts say.
fn code_of(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let taken = token(rest).unwrap_or(0);
        if taken > 0 {
            code.extend(rest[..taken].chars().filter(|character| *character == '\n'));
            rest = &rest[taken..];
        } else {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    code
}

/// The length of the comment, text or character that the source begins with, if it begins with one.
fn token(source: &str) -> Option<usize> {
    let up_to =
        |end: &str, from: usize| source[from..].find(end).map_or(source.len(), |found| from + found + end.len());
    if source.starts_with("//") {
        return Some(source.find('\n').unwrap_or(source.len()));
    }
    if source.starts_with("/*") {
        return Some(up_to("*/", 2));
    }
    if let Some(raw) = source.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            return Some(up_to(&format!("\"{}", "#".repeat(hashes)), hashes + 2));
        }
    }
    let quote = source.chars().next().filter(|first| "\"'".contains(*first))?;
    let mut escaped = false;
    let is_end = |(_, character): &(usize, char)| {
        let ends = *character == quote && !escaped;
        escaped = *character == '\\' && !escaped;
        ends
    };
    let end = source.char_indices().skip(1).find(is_end).map(|(at, _)| at + 1)?;
    // A lifetime has no second quote after one character.
    let is_character = source[1..end].starts_with('\\') || source[1..end].chars().count() == 2;
    (quote == '"' || is_character).then_some(end)
}

#[test]
fn comments_and_texts_are_no_code() {
    let cases = [
        ("a(); // tokio::\nb();", "a(); \nb();"),
        ("/// io::\n/* a\nb */c", "\n\nc"),
        (r#"f("http:// \" x", 'y')"#, "f(, )"),
        ("f('\"', '\\'', 'static)", "f(, , 'static)"),
        ("f(r#\"a\" tokio\"#)", "f()"),
        ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
    ];
    for (source, code) in cases {
        assert_eq!(code_of(source), code);
    }
}

#[test]
fn words_begin_where_names_begin() {
    assert!(mentions("use log::info;", "log::"));
    assert!(mentions("a.await", ".await"));
    assert!(mentions("pingora_core::x", "pingora"));
    assert!(!mentions("catalog::x", "log::"));
}
