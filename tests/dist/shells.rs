//! Manual pages, and the completions of shells.

use std::{collections::BTreeSet, fs, process::Command};

use super::{PROGRAM, UNPACKED, output};

/// The commands that `--help` lists.
fn commands() -> BTreeSet<String> {
    let help = output(Command::new(PROGRAM).arg("--help"));
    let listed = help.split_once("Commands:\n").expect("a list").1.split("\n\n").next().expect("its end");
    let names = listed.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !["", "help"].contains(name)).map(str::to_owned).collect()
}

#[test]
fn each_command_has_a_manual_page() {
    let names = fs::read_dir(UNPACKED.join("usr/share/man/man1")).unwrap();
    let names: BTreeSet<String> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    for command in commands() {
        assert!(names.contains(&format!("ifmatch-{command}.1.gz")), "{command}: {names:?}");
    }
    assert!(names.contains("ifmatch.1.gz") && names.contains("ifmatch-leases-break.1.gz"), "{names:?}");
    assert!(!names.contains("ifmatch-manual.1.gz"), "what packages alone use is not shown");
    assert!(!names.iter().any(|name| name.contains("-help")), "{names:?}");
}

#[test]
fn the_manual_pages_are_valid() {
    for page in fs::read_dir(UNPACKED.join("usr/share/man/man1")).unwrap() {
        let page = page.unwrap().path();
        let script = "gzip --decompress --stdout \"$1\" | groff -man -ww -z -K utf8 2>&1";
        assert_eq!(output(Command::new("bash").args(["-c", script, "bash"]).arg(&page)), "", "{}", page.display());
    }
}

/// The words that bash offers after these.
fn offered(words: &[&str]) -> BTreeSet<String> {
    let script = "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
                  _ifmatch ifmatch \"${@: -1}\" \"${@: -2:1}\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let completions = UNPACKED.join("usr/share/bash-completion/completions/ifmatch");
    let mut bash = Command::new("bash");
    let words = output(bash.args(["--norc", "-c", script, "bash"]).arg(completions).args(words));
    words.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_options() {
    assert!(offered(&["ifmatch", ""]).is_superset(&commands()));
    assert_eq!(offered(&["ifmatch", "hea"]), BTreeSet::from(["health".to_owned()]));
    assert!(offered(&["ifmatch", "health", "--"]).contains("--ready"));
    assert!(offered(&["ifmatch", "leases", "b"]).contains("break"));
}

/// The packaged completions for shells that the tests do not have.
#[test]
fn fish_and_zsh_know_each_command() {
    for path in ["usr/share/fish/vendor_completions.d/ifmatch.fish", "usr/share/zsh/vendor-completions/_ifmatch"] {
        let completions = fs::read_to_string(UNPACKED.join(path)).unwrap();
        for command in commands() {
            assert!(completions.contains(&command), "{path}: {command}");
        }
    }
}
