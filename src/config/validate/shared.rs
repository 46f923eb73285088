//! The keys of the stores that several proxies share, and of client certificates.

use std::ops::Range;

use http::Uri;

use super::{
    super::{
        Etcd, Login, Redis, Tls,
        client_tls::{client_tls, path},
        raw::Text,
        store::StoreKeys,
        words::StoreWord,
        written::Written,
    },
    check::Check,
    secrets::warn_if_open,
};

const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:2379";
const DEFAULT_URL: &str = "redis://127.0.0.1:6379";
const DEFAULT_PREFIX: &str = "ifmatch";
pub(super) const DEFAULT_SCHEMA: &str = "ifmatch";
/// The hint for a URL that holds a user or a password.
pub(super) const LOGIN_APART: &str = "write user = \"...\" and password_file = \"...\" instead";

pub(super) fn etcd(check: &mut Check<'_>, raw: &StoreKeys) -> Etcd {
    let endpoints = endpoints(check, raw);
    let tls = tls(check, raw, endpoints.iter().all(|url| url.starts_with("https://")));
    Etcd { endpoints, prefix: prefix(check, raw.prefix.as_ref()), login: login(check, raw), tls }
}

pub(super) fn redis(check: &mut Check<'_>, raw: &StoreKeys) -> Redis {
    let url = url(check, raw.url.as_ref());
    let tls = tls(check, raw, url.starts_with("rediss://"));
    Redis { url, prefix: prefix(check, raw.prefix.as_ref()), login: login(check, raw), tls }
}

/// Reports keys of another kind of store: their author believes that the proxy uses that kind.
pub(super) fn refuse_unused(check: &mut Check<'_>, raw: &StoreKeys, kind: StoreWord) {
    let endpoints = raw.endpoints.as_ref().filter(|list| {
        let written: Vec<&str> = list.get_ref().iter().map(|text| text.get_ref().as_str()).collect();
        written != [DEFAULT_ENDPOINT]
    });
    let other_than = |value: &Option<Text>, default: &str| {
        value.as_ref().filter(|text| text.get_ref() != default).map(Written::span)
    };
    let tls = [&raw.tls.ca, &raw.tls.cert, &raw.tls.key].into_iter().find_map(|value| other_than(value, ""));
    let has_prefix = matches!(kind, StoreWord::Etcd | StoreWord::Redis);
    let has_url = matches!(kind, StoreWord::Postgres | StoreWord::Redis);
    let is_shared = has_prefix || has_url;
    let keys: [(&str, Option<Range<usize>>, bool, &str); 7] = [
        ("endpoints", endpoints.map(Written::span), kind == StoreWord::Etcd, "etcd"),
        ("url", other_than(&raw.url, DEFAULT_URL), has_url, "redis"),
        ("prefix", other_than(&raw.prefix, DEFAULT_PREFIX), has_prefix, "etcd"),
        ("schema", other_than(&raw.schema, DEFAULT_SCHEMA), kind == StoreWord::Postgres, "postgres"),
        ("user", other_than(&raw.user, ""), is_shared, "etcd"),
        ("password_file", other_than(&raw.password_file, ""), is_shared, "etcd"),
        ("tls", tls, is_shared, "etcd"),
    ];
    for (key, span, is_used, meant) in keys {
        if let Some(span) = span.filter(|_| !is_used) {
            let message = format!("{key} has no effect for this kind of store");
            check.hinted(span, message, format!("did you mean kind = {meant:?}?"));
        }
    }
}

fn endpoints(check: &mut Check<'_>, raw: &StoreKeys) -> Vec<String> {
    const HINT: &str = "write endpoints = [\"http://127.0.0.1:2379\"]";
    let Some(list) = &raw.endpoints else { return vec![DEFAULT_ENDPOINT.to_owned()] };
    if list.get_ref().is_empty() {
        check.hinted(list.span(), "endpoints is empty", HINT);
    }
    let endpoints = check.each(list, |check, text| {
        let endpoint = text.get_ref();
        let is_server =
            parsed(endpoint, &["http", "https"]).is_some_and(|uri| uri.path() == "/" && uri.query().is_none());
        if endpoint.contains('@') {
            check.whole("an endpoint of the store holds a user or a password", LOGIN_APART);
        } else if !is_server {
            check.hinted(text.span(), format!("endpoint {endpoint:?} is not the URL of an etcd member"), HINT);
        }
        Some(endpoint.trim_end_matches('/').to_owned())
    });
    let is_secure = |endpoint: &String| endpoint.starts_with("https://");
    if endpoints.iter().any(is_secure) && !endpoints.iter().all(is_secure) {
        check.hinted(list.span(), "some endpoints use https and some http", "write all of them as https");
    }
    endpoints
}

fn url(check: &mut Check<'_>, value: Option<&Text>) -> String {
    const HINT: &str = "write url = \"redis://127.0.0.1:6379\", or \"rediss://...\" for TLS; a number as its path \
                        chooses the database";
    let Some(value) = value else { return DEFAULT_URL.to_owned() };
    let url = value.get_ref();
    let is_url = parsed(url, &["redis", "rediss"]).is_some_and(|uri| is_database(uri.path()) && uri.query().is_none());
    if url.contains('@') {
        // The report has no position, because the excerpt would show the password.
        check.whole("the url of the store holds a user or a password", LOGIN_APART);
    } else if !is_url {
        check.hinted(value.span(), format!("url {url:?} is not a Redis URL"), HINT);
    }
    url.clone()
}

fn is_database(path: &str) -> bool {
    let number = path.trim_start_matches('/');
    number.is_empty() || number.parse::<u8>().is_ok()
}

fn parsed(url: &str, schemes: &[&str]) -> Option<Uri> {
    let uri = url.parse::<Uri>().ok()?;
    let has_scheme = uri.scheme_str().is_some_and(|scheme| schemes.contains(&scheme));
    (has_scheme && uri.host().is_some_and(|host| !host.is_empty())).then_some(uri)
}

fn prefix(check: &mut Check<'_>, value: Option<&Text>) -> String {
    let Some(value) = value else { return DEFAULT_PREFIX.to_owned() };
    let prefix = value.get_ref();
    // Braces would end the hash tag of Redis, and a slash at either end would make two prefixes look like one.
    let is_plain = prefix.chars().all(|each| each.is_ascii_graphic() && !"{}*?[]\\\"".contains(each));
    if prefix.is_empty() || !is_plain || prefix.starts_with('/') || prefix.ends_with('/') {
        let message = format!("prefix {prefix:?} cannot be a prefix of keys");
        check.hinted(value.span(), message, "write letters, digits, \"-\", \"_\", \".\", and \"/\" in between");
    }
    prefix.clone()
}

pub(super) fn login(check: &mut Check<'_>, raw: &StoreKeys) -> Option<Login> {
    let password_file = path(check, "password_file", raw.password_file.as_ref());
    if let Some(file) = &raw.password_file {
        warn_if_open(check, "password_file", file);
    }
    let user = raw.user.as_ref().filter(|user| !user.get_ref().is_empty());
    check.refuse(
        raw.password_file.as_ref(),
        user.is_none() && password_file.is_some(),
        "password_file without user",
        "add user = \"...\"; it is \"default\" in Redis",
    );
    user.map(|user| Login { user: user.get_ref().clone(), password_file })
}

pub(super) fn tls(check: &mut Check<'_>, raw: &StoreKeys, is_secure: bool) -> Option<Tls> {
    let unused = (
        "tls is set, but the store is reached without it",
        "use https://, rediss:// or ?sslmode=verify-full in its URL",
    );
    client_tls(check, "tls", &raw.tls, (!is_secure).then_some(unused))
}
