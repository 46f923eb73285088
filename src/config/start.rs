//! The configuration of a start without a file: one upstream, one policy, every path.

use http::Uri;
use toml::Value;

use super::{Loaded, listen::host_and_port, parse, problem::Problem, problem::Problems, words::Word};
use crate::core::policy::Policy;

/// The source name in reports of command-line problems.
const SOURCE: &str = "command line";

/// The route of a `WebDAV` server, as `config/webdav.toml` has it.
const WEBDAV: &str = "policy = \"pessimistic\"\ndialect = \"webdav\"\netag = \"upstream\"\nrequire = \"never\"\n";

/// How the only route of a start without a file is guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardedBy {
    /// By a policy.
    Policy(Policy),
    /// By the locks of the clients of a `WebDAV` server.
    Webdav,
}

/// Returns the configuration of `ifmatch run --upstream http://127.0.0.1:9000 --policy optimistic`. The options stand
/// for a short file, so every rule of a file applies to them. Without `listen` the default address is used, and without
/// `admin` there is no admin listener.
pub fn from_upstream(
    upstream_url: &str,
    guarded: GuardedBy,
    listen: &[String],
    admin: Option<&str>,
) -> Result<Loaded, Problems> {
    let server = Value::from(server(upstream_url)?).to_string();
    let listen = match listen {
        [] => String::new(),
        addresses => format!("listen = {}\n", Value::from(addresses.to_vec())),
    };
    let admin = admin.map(|address| format!("[admin]\nlisten = {}\n", Value::from(address))).unwrap_or_default();
    let route = match guarded {
        GuardedBy::Policy(policy) => format!("policy = {}\n", Value::from(policy.word())),
        GuardedBy::Webdav => WEBDAV.to_owned(),
    };
    parse(
        SOURCE,
        &format!(
            "[server]\n{listen}\n{admin}\n[upstreams.upstream]\nservers = [{server}]\n\n\
             [[routes]]\nname = \"all\"\npath = \"/{{*rest}}\"\nupstream = \"upstream\"\n{route}"
        ),
    )
}

/// Returns the server that a URL names, in the form of `servers`: `host:port` for `http` (default port 80), or
/// `https://host:port`.
fn server(url: &str) -> Result<String, Problem> {
    const HINT: &str = "write it as http://127.0.0.1:9000";
    let problem = |what: &str| Problem::of_source(SOURCE, format!("--upstream {url:?} {what}")).hint(HINT);
    let with_scheme = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let parsed = with_scheme.parse::<Uri>().map_err(|error| problem(&format!("is not a URL: {error}")))?;
    let (before, default_port) = match parsed.scheme_str() {
        Some("http") => ("", 80),
        Some("https") => ("https://", 443),
        _ => return Err(problem("is neither http nor https")),
    };
    if parsed.path_and_query().is_some_and(|target| target != "/") {
        return Err(problem("has a path, but requests are forwarded with their own path"));
    }
    let authority = parsed.authority().filter(|authority| !authority.host().is_empty());
    let authority = authority.ok_or_else(|| problem("names no host"))?;
    if authority.as_str().contains('@') {
        return Err(problem("holds a user or a password"));
    }
    if authority.as_str() == authority.host() {
        return Ok(format!("{before}{authority}:{default_port}"));
    }
    host_and_port(authority.as_str()).map_err(problem)?;
    Ok(format!("{before}{authority}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::Listen;

    fn by_policy(url: &str, policy: Policy, listen: &[String]) -> Result<Loaded, Problems> {
        from_upstream(url, GuardedBy::Policy(policy), listen, None)
    }

    #[test]
    fn an_option_opens_an_admin_listener_and_the_rules_of_files_apply_to_it() {
        let started = |admin| from_upstream("http://127.0.0.1:9000", GuardedBy::Policy(Policy::Optimistic), &[], admin);
        assert!(started(None).expect("it is valid").config.admin.is_none());
        let admin = started(Some("127.0.0.1:9901")).expect("it is valid").config.admin.expect("a listener");
        assert_eq!(admin.listen, Listen::Tcp("127.0.0.1:9901".to_owned()));
        let problems = started(Some("192.0.2.1:9901")).expect_err("anybody could break leases").to_string();
        assert!(problems.contains("token"), "{problems}");
    }

    #[test]
    fn options_make_one_route_for_every_path() {
        let config = by_policy("http://127.0.0.1:9000/", Policy::Optimistic, &[]).expect("it is valid").config;
        assert_eq!(config.server.listen, [Listen::Tcp("127.0.0.1:8080".to_owned())]);
        let [route] = config.routes.as_slice() else { panic!("there is one route") };
        assert_eq!(route.upstream.servers, ["127.0.0.1:9000"]);
        assert_eq!(route.path.to_string(), "/{*rest}");
        assert_eq!(route.policy, Policy::Optimistic);
    }

    #[test]
    fn one_option_guards_a_webdav_server_as_its_example_does() {
        let config = from_upstream("http://127.0.0.1:9000/", GuardedBy::Webdav, &[], None).expect("it is valid").config;
        let example =
            parse("config/webdav.toml", include_str!("../../config/webdav.toml")).expect("it is valid").config;
        let guard = |config: &crate::config::Config| config.routes.first().and_then(|route| route.guard.clone());
        assert!(guard(&config).is_some() && guard(&config) == guard(&example));
    }

    #[test]
    fn options_name_the_addresses_to_listen_on() {
        let listen = ["127.0.0.1:0".to_owned(), "unix:/run/\"x\".sock".to_owned()];
        let config = by_policy("localhost", Policy::LastWriterWins, &listen).expect("it is valid").config;
        assert_eq!(
            config.routes.first().map(|route| route.upstream.servers.clone()),
            Some(vec!["localhost:80".to_owned()])
        );
        assert_eq!(
            config.server.listen,
            [Listen::Tcp("127.0.0.1:0".to_owned()), Listen::Unix("/run/\"x\".sock".into())]
        );
    }

    /// The certificate is checked against the authorities that the system trusts; a system without any is reported.
    #[test]
    fn a_url_of_https_is_a_server_that_is_reached_over_tls() {
        match by_policy("https://example.com", Policy::Optimistic, &[]) {
            Ok(loaded) => {
                let upstream = loaded.config.routes.first().map(|route| Arc::clone(&route.upstream)).expect("a route");
                assert_eq!(
                    (upstream.servers.as_slice(), upstream.tls.is_some()),
                    (&["example.com:443".to_owned()][..], true)
                );
            }
            Err(problems) => assert!(problems.to_string().contains("has no authorities"), "{problems}"),
        }
    }

    #[test]
    fn a_password_in_a_url_is_refused_and_not_repeated() {
        let problems = by_policy("http://app:secret@127.0.0.1:9000", Policy::Optimistic, &[]).expect_err("a password");
        let shown = problems.to_string();
        assert!(shown.contains("app:******@127.0.0.1:9000\" holds a user or a password"), "{shown}");
    }

    #[test]
    fn a_url_that_is_no_server_is_refused() {
        for url in [
            "https://example.com/base",
            "http://127.0.0.1:9000/base",
            "http://",
            "ftp://x",
            "a b",
            "",
            "foo:bar",
            "foo:",
            "foo:99999",
        ] {
            let problems = by_policy(url, Policy::Optimistic, &[]).expect_err(url);
            assert!(problems.to_string().starts_with("command line: --upstream"), "{problems}");
        }
    }
}
