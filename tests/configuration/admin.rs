//! The admin listener in the configuration.

use std::path::PathBuf;

use ifmatch::config::{Admin, Listen};

use super::{BASE, config, problems};

fn admin(lines: &str) -> Option<Admin> {
    config(&format!("{BASE}[admin]\n{lines}\n")).admin
}

fn mistakes(lines: &str) -> Vec<String> {
    problems(&format!("{BASE}[admin]\n{lines}\n"))
}

#[test]
fn there_is_no_admin_listener_unless_one_is_asked_for() {
    assert_eq!(config(BASE).admin, None);
    assert_eq!(admin("listen = \"\""), None);
}

#[test]
fn what_is_said_about_the_admin_listener_is_what_it_is() {
    let local = admin("listen = \"127.0.0.1:9901\"").expect("a listener");
    let listen = Listen::Tcp("127.0.0.1:9901".to_owned());
    assert_eq!(local, Admin { listen, hosts: Vec::new(), token_file: None, token_env: None });
    let reachable = admin("listen = \"[::]:9901\"\nhosts = [\"Admin.example.com\"]\ntoken_env = \"TOKEN\"");
    let expected = Admin {
        listen: Listen::Tcp("[::]:9901".to_owned()),
        hosts: vec!["admin.example.com".to_owned()],
        token_file: None,
        token_env: Some("TOKEN".to_owned()),
    };
    assert_eq!(reachable, Some(expected));
    let file = admin("listen = \"unix:/run/admin\"\ntoken_file = \"/etc/token\"").and_then(|admin| admin.token_file);
    assert_eq!(file, Some(PathBuf::from("/etc/token")));
}

/// Anyone who reaches the listener can break leases.
#[test]
fn a_listener_that_others_can_reach_needs_a_token() {
    for address in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "admin.example.com:1"] {
        let lines = format!("listen = {address:?}");
        let expected = format!("admin listens on {address:?}, which others can reach, without a token");
        assert_eq!(mistakes(&lines), [expected]);
        assert_eq!(mistakes(&format!("{lines}\ntoken_env = \"TOKEN\"")), [""; 0]);
    }
    for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1", "unix:/run/admin"] {
        assert_eq!(mistakes(&format!("listen = {address:?}")), [""; 0]);
    }
}

#[test]
fn each_mistake_about_the_admin_listener_is_named() {
    let listen = "listen = \"127.0.0.1:1\"\n";
    for (lines, expected) in [
        ("token_env = \"TOKEN\"".to_owned(), "token_env without listen"),
        ("token_file = \"/token\"".to_owned(), "token_file without listen"),
        ("hosts = [\"a.example\"]".to_owned(), "hosts without listen"),
        ("listen = \"tls:127.0.0.1:1\"".to_owned(), "the admin listener does not speak TLS"),
        ("listen = \"127.0.0.1\"".to_owned(), "listen address \"127.0.0.1\" has no port"),
        ("listen = \"unix:socket\"".to_owned(), "listen address \"unix:socket\" has no absolute path"),
        (format!("{listen}token_file = \"token\""), "token_file is \"token\", which is no absolute path"),
        (
            format!("{listen}token_file = \"/token\"\ntoken_env = \"TOKEN\""),
            "token_file and token_env both name the token",
        ),
        (format!("{listen}hosts = [\"a.example:80\"]"), "hosts: \"a.example:80\" is not a host name"),
        (format!("{listen}token = \"x\""), "unknown key `token`"),
    ] {
        assert_eq!(mistakes(&lines), [expected], "{lines}");
    }
}

/// A report goes where logs go.
#[test]
fn a_token_in_the_place_of_a_name_is_not_shown() {
    let text = format!("{BASE}[admin]\nlisten = \"127.0.0.1:1\"\ntoken_env = \"hunter2-hunter2\"\n");
    let shown = ifmatch::config::parse("test.toml", &text).expect_err("it is refused").to_string();
    assert!(
        shown.contains("token_env in [admin] is not the name of a variable") && !shown.contains("hunter2"),
        "{shown}"
    );
}
