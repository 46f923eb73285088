//! Documents in Markdown, whose blocks are tried.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// A fenced block of a document.
#[derive(Debug)]
pub struct Block {
    /// The kind of the block: what stands behind its opening fence.
    pub kind: String,
    pub text: String,
}

/// The fenced blocks of a document, in their order.
pub fn blocks(document: &str) -> Vec<Block> {
    let (mut blocks, mut is_open) = (Vec::<Block>::new(), false);
    for line in document.lines() {
        match line.strip_prefix("```") {
            Some(kind) if !is_open => {
                blocks.push(Block { kind: kind.to_owned(), text: String::new() });
                is_open = true;
            }
            Some(_) => is_open = false,
            None if is_open => {
                let block = blocks.last_mut().expect("a block is open");
                block.text.extend([line, "\n"]);
            }
            None => {}
        }
    }
    assert!(!is_open, "the last block has no end");
    blocks
}

/// The commands of a `console` block, each with the lines that are shown below it.
pub fn steps(block: &str) -> Vec<(&str, Vec<&str>)> {
    let mut steps: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push((command, Vec::new())),
            (None, Some((_, shown))) => shown.push(line),
            (None, None) => panic!("a console block begins with a command, not with {line:?}"),
        }
    }
    steps
}

/// A shell command that finds `ifmatch`, and that notices no `make` around the tests.
pub fn shell(command: &str, directory: &Path) -> Command {
    let programs = Path::new(env!("CARGO_BIN_EXE_ifmatch")).parent().map(PathBuf::from);
    let path = env::join_paths(programs.into_iter().chain(env::split_paths(&env::var_os("PATH").expect("a path"))));
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", command]).current_dir(directory).env("PATH", path.expect("a path"));
    for variable in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "RUST_LOG"] {
        shell.env_remove(variable);
    }
    shell
}

/// Runs a command that is expected to succeed, and to print the shown lines in their order, perhaps with others between.
/// A shown document may leave out members.
#[track_caller]
pub fn assert_prints(command: &str, directory: &Path, shown: &[&str]) {
    let output = shell(command, directory).output().expect("bash starts");
    assert!(output.status.success(), "{command}: {}\n{}", output.status, text_of(&output));
    let printed = String::from_utf8_lossy(&output.stdout);
    let mut lines = printed.lines();
    for expected in shown {
        assert!(
            lines.any(|line| line == *expected || has_members(line, expected)),
            "{command}\nis said to print\n{expected}\nand prints\n{printed}"
        );
    }
}

/// True if both texts are JSON objects, and the first has all members of the second: a refusal also has an id, which is
/// never the same twice.
pub fn has_members(printed: &str, shown: &str) -> bool {
    let object = |text: &str| serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).ok();
    let (Some(printed), Some(shown)) = (object(printed), object(shown)) else { return false };
    shown.iter().all(|(name, value)| printed.get(name) == Some(value))
}

fn text_of(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
