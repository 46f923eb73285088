//! The keys of the PostgreSQL store.

use http::Uri;

use super::{
    super::{Postgres, raw::Text, store::StoreKeys},
    check::Check,
    shared::{self, DEFAULT_SCHEMA, LOGIN_APART},
};

const DEFAULT_PORT: u16 = 5_432;

const HINT: &str = "write url = \"postgres://host:5432/database\", with ?sslmode=verify-full for TLS; several hosts \
                    are separated by commas";

/// The largest number of bytes in the name of a schema. PostgreSQL cuts off the rest.
const NAME_BYTES_MAX: usize = 63;

/// The parts of a connection URL.
struct ParsedUrl {
    hosts: Vec<(String, u16)>,
    database: String,
    is_secure: bool,
}

pub(super) fn postgres(check: &mut Check<'_>, raw: &StoreKeys) -> Postgres {
    let (url, place) = url(check, raw);
    let ParsedUrl { hosts, database, is_secure } = place;
    let tls = shared::tls(check, raw, is_secure);
    let schema = schema(check, raw.schema.as_ref());
    Postgres { url, hosts, database, is_secure, schema, login: shared::login(check, raw), tls }
}

fn url(check: &mut Check<'_>, raw: &StoreKeys) -> (String, ParsedUrl) {
    let nowhere = ParsedUrl { hosts: Vec::new(), database: String::new(), is_secure: false };
    let Some(value) = &raw.url else {
        // The database has no default, because its operator must know where the records are.
        let message = "kind = \"postgres\" needs a url".to_owned();
        match &raw.kind {
            Some(kind) => check.hinted(kind.span(), message, HINT),
            None => check.whole(&message, HINT),
        }
        return (String::new(), nowhere);
    };
    let url = value.get_ref();
    if url.contains('@') {
        // The report has no position, because the excerpt would show the password.
        check.whole("the url of the store holds a user or a password", LOGIN_APART);
        return (url.clone(), nowhere);
    }
    let place = parsed(url).unwrap_or_else(|| {
        check.hinted(value.span(), format!("url {url:?} is not a PostgreSQL URL"), HINT);
        nowhere
    });
    (url.clone(), place)
}

fn parsed(url: &str) -> Option<ParsedUrl> {
    let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"))?;
    let (hosts, rest) = rest.split_once('/')?;
    let (database, query) = rest.split_once('?').unwrap_or((rest, ""));
    let is_name =
        !database.is_empty() && database.chars().all(|each| each.is_ascii_alphanumeric() || "_-.".contains(each));
    let is_secure = match query {
        "" | "sslmode=disable" => false,
        "sslmode=verify-full" => true,
        _ => return None,
    };
    let hosts = hosts.split(',').map(host).collect::<Option<Vec<_>>>()?;
    is_name.then(|| ParsedUrl { hosts, database: database.to_owned(), is_secure })
}

fn host(text: &str) -> Option<(String, u16)> {
    let uri = format!("postgres://{text}/").parse::<Uri>().ok()?;
    let authority = uri.authority()?;
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let has_port = authority.as_str().len() > authority.host().len();
    let port = if has_port { authority.port_u16()? } else { DEFAULT_PORT };
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

fn schema(check: &mut Check<'_>, value: Option<&Text>) -> String {
    let Some(value) = value else { return DEFAULT_SCHEMA.to_owned() };
    let schema = value.get_ref();
    let is_plain = schema.bytes().all(|each| each.is_ascii_lowercase() || each.is_ascii_digit() || each == b'_');
    let begins_well = schema.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    if !is_plain || !begins_well || schema.len() > NAME_BYTES_MAX || schema.starts_with("pg_") {
        let message = format!("schema {schema:?} cannot be the name of a schema");
        check.hinted(value.span(), message, "write lowercase letters, digits and \"_\", a letter first");
    }
    schema.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_hosts_and_a_database() {
        let place = parsed("postgres://a,b:6000,[::1]:7000/orders?sslmode=verify-full").unwrap();
        let hosts = [("a", 5_432), ("b", 6_000), ("::1", 7_000)].map(|(host, port)| (host.to_owned(), port));
        assert_eq!((place.hosts.as_slice(), &*place.database, place.is_secure), (hosts.as_slice(), "orders", true));
        assert!(parsed("postgresql://a/b").is_some_and(|place| !place.is_secure));
    }

    #[test]
    fn what_is_no_url_of_a_database_is_refused() {
        for url in [
            "redis://a/b",
            "postgres://a",
            "postgres://a/",
            "postgres:///b",
            "postgres://a,/b",
            "postgres://a:b/c",
            "postgres://a/b?sslmode=require",
            "postgres://a/b'c",
        ] {
            assert!(parsed(url).is_none(), "{url}");
        }
    }
}
