//! Settings that are allowed, and rarely intended: `check` reports them.

use std::{
    fs,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
};

use super::{BASE, problems, warnings};

/// A file of secrets that all users can read, under each key that names one.
#[test]
fn a_file_of_secrets_is_not_for_everybody() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("secret");
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).expect("a file");
    let name = path.display();
    for (key, lines) in [
        ("token_file", format!("[admin]\nlisten = \"127.0.0.1:9901\"\ntoken_file = \"{name}\"")),
        ("password_file", format!("[store]\nkind = \"redis\"\nuser = \"a\"\npassword_file = \"{name}\"")),
        ("path", format!("[store]\nkind = \"disk\"\npath = \"{name}\"")),
    ] {
        for (mode, is_told) in [(0o600, false), (0o640, false), (0o644, true), (0o604, true)] {
            file.set_permissions(fs::Permissions::from_mode(mode)).expect("permissions");
            let message = format!("{key}: every user of this machine can read {name} (mode {mode:04o})");
            let expected = if is_told { vec![message] } else { Vec::new() };
            assert_eq!(warnings(&format!("{BASE}{lines}\n")), expected, "{key} {mode:04o}");
        }
    }
}

#[test]
fn trust_in_everybody_is_told_of() {
    for (written, is_told) in [("0.0.0.0/0", true), ("::/0", true), ("10.0.0.0/8", false), ("unix", false)] {
        let found = warnings(&format!("[server]\ntrusted_proxies = [\"{written}\"]\n{BASE}"));
        let message = format!("trusted_proxies has {written:?}: every client can say where it comes from");
        assert_eq!(found, if is_told { vec![message] } else { Vec::new() }, "{written}");
    }
}

#[test]
fn clients_without_an_identity_are_told_of_once() {
    let message = "identity_headers is empty: all clients count as one, whatever fields they send";
    assert_eq!(warnings(&format!("{BASE}identity_headers = []\n")), [message]);
    let two = format!("{BASE}[[routes]]\npath = \"/b/{{id}}\"\nupstream = \"docs\"\npolicy = \"optimistic\"\n");
    assert_eq!(warnings(&format!("{two}[defaults]\nidentity_headers = []\n")), [message]);
    assert_eq!(warnings(&format!("{BASE}identity_headers = [\"X-User\"]\n")), [""; 0]);
}

/// A request would go round until its head is too large.
#[test]
fn a_proxy_is_not_its_own_upstream() {
    let itself = |listen: &str| problems(&format!("[server]\nlisten = [\"127.0.0.1:1\", \"{listen}\"]\n{BASE}"));
    for listen in ["127.0.0.1:9001", "0.0.0.0:9001", "[::]:9001", "localhost:9001"] {
        let message = "upstream \"files\" is this proxy itself: it listens on \"127.0.0.1:9001\"";
        assert_eq!(itself(listen), [message], "{listen}");
    }
    assert_eq!(itself("192.0.2.1:9001"), [""; 0]);
}
