//! The settings of TLS in a file, and the messages about a file that names wrong certificates (docs/tls.md).

#![allow(clippy::expect_used, clippy::unnecessary_debug_formatting, reason = "a path in quotes is a text of TOML")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use ifmatch::{
    config::{Listen, parse},
    tls::{CertificateFiles, ClientAuth},
};
use tempfile::TempDir;

use super::{BASE, config, problems, warnings};
use crate::certificates::{Authority, Issued, Time};

/// A directory with the files of an authority.
struct Files {
    directory: TempDir,
    authority: Authority,
}

impl Files {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory"), authority: Authority::new("authority") }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn issue(&self, name: &str) -> (PathBuf, PathBuf) {
        self.authority.issue(&[name]).write(self.path(), name)
    }

    fn text(&self, name: &str, text: &str) -> PathBuf {
        let file = self.path().join(name);
        fs::write(&file, text).expect("a file");
        file
    }
}

/// A file whose listener has this certificate.
fn listening(certificate: &Path, key: &Path) -> String {
    format!(
        "{BASE}[server]\nlisten = [\"tls:0.0.0.0:8443\"]\n[[server.tls.certificates]]\ncert = {certificate:?}\nkey = {key:?}\n"
    )
}

/// A file whose upstream is reached with these lines in `[upstreams.secure.tls]`.
fn reaching(servers: &str, lines: &str) -> String {
    format!("{BASE}[upstreams.secure]\nservers = [{servers}]\n[upstreams.secure.tls]\n{lines}\n")
}

#[test]
fn what_is_said_about_listeners_is_what_they_are() {
    let files = Files::new();
    let (a, b) = (files.issue("a.example"), files.issue("b.example"));
    let ca = files.authority.write(files.path(), "clients");
    let text = format!(
        "{BASE}[server]\nlisten = [\"127.0.0.1:8080\", \"tls:[::]:8443\"]\n[server.tls]\n\
         certificates = [{{ cert = {:?}, key = {:?} }}, {{ cert = {:?}, key = {:?} }}]\n\
         client_auth = \"required\"\nclient_ca = {ca:?}\nhandshake_timeout = \"3s\"\nreload_interval = \"1m\"\n",
        a.0, a.1, b.0, b.1
    );
    let server = config(&text).server;
    assert_eq!(server.listen, [Listen::Tcp("127.0.0.1:8080".into()), Listen::Tls("[::]:8443".into())]);
    let pair = |(certificate, key)| CertificateFiles { certificate, key };
    assert_eq!(server.tls.certificates, [pair(a), pair(b)]);
    assert_eq!((server.tls.client_auth, server.tls.client_ca), (ClientAuth::Required, Some(ca)));
    assert_eq!((server.tls.handshake_timeout.as_secs(), server.tls.reload_interval.as_secs()), (3, 60));
}

/// Each with the file's own name, so that it is known which one to mend.
#[test]
fn each_file_that_cannot_be_used_is_one_problem() {
    let files = Files::new();
    let (certificate, key) = files.issue("a.example");
    let (_, other_key) = files.issue("b.example");
    let (empty, missing) = (files.text("empty", "nothing\n"), files.path().join("missing"));
    let broken = files.text("broken", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let encrypted =
        files.text("encrypted", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
    for (certificate, key, wrong, expected) in [
        (&missing, &key, &missing, "cannot be read: No such file or directory (os error 2)"),
        (&certificate, &missing, &missing, "cannot be read: No such file or directory (os error 2)"),
        (&empty, &key, &empty, "holds no certificate"),
        (&broken, &key, &broken, "holds a certificate that cannot be understood"),
        (&certificate, &empty, &empty, "holds no private key"),
        (&certificate, &encrypted, &encrypted, "holds a private key that is encrypted"),
        (&certificate, &other_key, &other_key, "holds a key that does not belong to the certificate"),
    ] {
        assert_eq!(problems(&listening(certificate, key)), [format!("{} {expected}", wrong.display())]);
    }
}

#[test]
fn a_wrong_certificate_is_shown_with_its_line_and_what_to_do() {
    let files = Files::new();
    let ((certificate, _), (_, key)) = (files.issue("a.example"), files.issue("b.example"));
    let text = listening(&certificate, &key);
    let line = text.lines().position(|line| line.starts_with("key = \"/")).expect("the line of the key") + 1;
    let shown = parse("test.toml", &text).expect_err("the key is another one").to_string();
    assert!(shown.starts_with(&format!("test.toml:{line}:7: {} holds a key", key.display())), "{shown}");
    assert!(shown.contains(&format!("{line} | key = {key:?}")), "{shown}");
    assert!(shown.contains("hint: take the key that the certificate was requested with"), "{shown}");
}

/// A certificate that has run out is a reason to hurry, not to stand still.
#[test]
fn a_certificate_out_of_its_time_is_a_warning() {
    let files = Files::new();
    for (time, expected) in [(Time::Past, "expired on"), (Time::Future, "is not valid before")] {
        let (certificate, key) = files.authority.issue_at(&["a.example"], time).write(files.path(), "old");
        let found = warnings(&listening(&certificate, &key));
        assert!(matches!(found.as_slice(), [warning] if warning.contains(expected)), "{found:?}");
    }
}

#[test]
fn a_listener_that_cannot_be_meant_is_one_problem() {
    let files = Files::new();
    let (certificate, key) = files.issue("a.example");
    let ca = files.authority.write(files.path(), "clients");
    let good = listening(&certificate, &key);
    let cases = [
        (
            format!("{BASE}[server]\nlisten = [\"tls:0.0.0.0:8443\"]\n"),
            "a listener speaks TLS, but there is no certificate",
        ),
        (good.replace("tls:", ""), "there is a certificate, but no listener speaks TLS"),
        (good.replace("tls:0.0.0.0:8443", "tls:8443"), "listen address \"tls:8443\" has no port"),
    ];
    for (text, expected) in &cases {
        let found = problems(text);
        assert!(found.iter().any(|problem| problem == expected), "{found:?}\nin\n{text}");
    }
    let clients = |lines: &str| {
        good.replace("[[server.tls.certificates]]", &format!("[server.tls]\n{lines}\n[[server.tls.certificates]]"))
    };
    let file = format!("client_ca = {ca:?}");
    assert_eq!(problems(&clients(&file)), [format!("{} is set, but client_auth is off", ca.display())]);
    let expected = "clients are asked for a certificate, but there is no client_ca";
    assert_eq!(problems(&clients("client_auth = \"required\"")), [expected]);
    assert_eq!(problems(&clients("client_auth = \"always\"")), ["tls.client_auth cannot be \"always\""]);
    assert_eq!(problems(&clients(&format!("client_auth = \"optional\"\n{file}"))), [""; 0]);
}

#[test]
fn a_certificate_needs_both_of_its_files() {
    let files = Files::new();
    let (certificate, _) = files.issue("a.example");
    let text = format!(
        "{BASE}[server]\nlisten = [\"tls:0.0.0.0:8443\"]\n[server.tls]\ncertificates = [{{ cert = {certificate:?} }}]\n"
    );
    assert_eq!(problems(&text), ["a certificate is two files, cert and key"]);
}

#[test]
fn a_server_of_https_has_a_port_of_its_own() {
    let files = Files::new();
    let ca = files.authority.write(files.path(), "ca");
    let upstream = |servers: &str| {
        let text = reaching(servers, &format!("ca = {ca:?}"))
            + "[[routes]]\npath = \"/s\"\nupstream = \"secure\"\npolicy = \"last-writer-wins\"\n";
        config(&text).routes.last().expect("a route").upstream.clone()
    };
    assert_eq!(upstream("\"https://Backend.example\", \"https://b:8443/\"").servers, ["backend.example:443", "b:8443"]);
    assert!(upstream("\"https://b\"").tls.is_some());
}

#[test]
fn an_upstream_that_cannot_be_meant_is_one_problem() {
    let files = Files::new();
    let ca = files.authority.write(files.path(), "ca");
    let Issued { certificate, .. } = files.authority.issue(&["client"]);
    let client = files.text("client.pem", &certificate);
    let file = format!("ca = {ca:?}");
    let cases = [
        ("\"b:8443\"", file.clone(), "tls is set, but the servers are reached without it".to_owned()),
        ("\"https://a\", \"b:443\"", file.clone(), "some servers use https and some do not".to_owned()),
        ("\"https://a/base\"", file.clone(), "server \"a/base:443\" is not host:port".to_owned()),
        (
            "\"https://a\"",
            format!("{file}\nserver_name = \"a b\""),
            "tls.server_name \"a b\" is not a host name".into(),
        ),
        ("\"https://a\"", format!("{file}\ncert = {client:?}"), "tls.cert and tls.key belong together".to_owned()),
        (
            "\"https://a\"",
            "ca = \"/nonexistent\"".to_owned(),
            "/nonexistent cannot be read: No such file or directory (os error 2)".into(),
        ),
        ("\"https://a\"", "ca = \"relative\"".to_owned(), "tls.ca is \"relative\", which is no absolute path".into()),
        ("\"unix:run/backend\"", String::new(), "server \"unix:run/backend\" has no absolute path".to_owned()),
    ];
    for (servers, lines, expected) in cases {
        assert_eq!(problems(&reaching(servers, &lines)), [expected], "{servers}\n{lines}");
    }
}

/// Root reads what it likes, so that this shows nothing then.
#[test]
fn a_key_that_everybody_can_read_is_told_of() {
    let files = Files::new();
    let authority = files.authority.write(files.path(), "authority");
    let (certificate, key) = files.issue("a.example");
    let (shown, pair) = (key.display(), format!("cert = {certificate:?}\nkey = {key:?}\n"));
    for (name, text) in [
        ("tls.certificates.key", listening(&certificate, &key)),
        ("tls.key", reaching("\"https://a\"", &format!("ca = {authority:?}\n{pair}"))),
        ("tls.key", format!("{BASE}[store]\nkind = \"redis\"\nurl = \"rediss://a\"\n[store.tls]\n{pair}")),
    ] {
        for (mode, is_told) in [(0o600, false), (0o640, false), (0o644, true)] {
            fs::set_permissions(&key, fs::Permissions::from_mode(mode)).expect("permissions");
            let message = format!("{name}: every user of this machine can read {shown} (mode {mode:04o})");
            assert_eq!(warnings(&text), if is_told { vec![message] } else { Vec::new() }, "{text}");
        }
    }
}

#[test]
fn a_key_that_may_not_be_read_says_who_should() {
    let files = Files::new();
    let (certificate, key) = files.issue("a.example");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o000)).expect("permissions");
    if fs::read(&key).is_ok() {
        return;
    }
    let shown = parse("test.toml", &listening(&certificate, &key)).expect_err("it is unreadable").to_string();
    assert!(shown.contains("let the user that ifmatch runs as read it"), "{shown}");
}
