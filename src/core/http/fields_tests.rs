//! Tests of which fields may be named in `Connection`, have another spelling, and be removed.

use http::HeaderValue;

use super::*;

fn lines(lines: &[&'static str]) -> HeaderMap {
    lines.iter().map(|line| (header::CONNECTION, HeaderValue::from_static(line))).collect()
}

fn named(name: &'static str) -> HeaderMap {
    [(HeaderName::from_static(name), HeaderValue::from_static(""))].into_iter().collect()
}

fn faults(headers: &HeaderMap) -> Option<Fault> {
    let own = [HeaderName::from_static("x-tenant"), HeaderName::from_static("x_shard")];
    fault(headers).or_else(|| fault_of_own(headers, &own.iter()))
}

#[test]
fn connection_may_name_nothing_that_is_judged_or_written_here() {
    for name in [
        "If-Match",
        "if-none-match",
        "IF-MODIFIED-SINCE",
        "If-Range",
        "Range",
        "Lease-Id",
        "Lease-Duration",
        "Proposed-Lease-Id",
        "Delete-Pending",
        "Idempotency-Key",
        "Fencing-Token",
        "Forwarded",
        "X-Forwarded-For",
        "X-Forwarded-Proto",
        "X-Real-IP",
        "Via",
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Authorization",
        "Cookie",
        "X-Api-Key",
        "X-HTTP-Method-Override",
        "X-Original-URL",
        "X-Forwarded-Prefix",
        "Script-Name",
        "Destination",
        "If",
        "Lock-Token",
        "Expect",
        "x-ms-lease-id",
        "x-ms-meta-a",
        "x-amz-date",
        "amz-sdk-invocation-id",
        "traceparent",
        "X-Tenant",
        "X_Shard",
    ] {
        assert_eq!(faults(&lines(&[name])), Some(Fault::Nominated), "{name}");
    }
    for line in [&["keep-alive,\tIf-Match , x"][..], &["close", "if-match"], &[",,If-Match"], &["close, ,\t,if-match,"]]
    {
        assert_eq!(faults(&lines(line)), Some(Fault::Nominated), "{line:?}");
    }
}

#[test]
fn connection_may_name_what_is_for_this_hop() {
    for line in ["", ",", "close", "keep-alive", "Upgrade, HTTP2-Settings", "TE", "x-own, Keep-Alive", "iff"] {
        assert_eq!(faults(&lines(&[line])), None, "{line}");
    }
    assert_eq!(faults(&HeaderMap::new()), None);
}

/// RFC 9110 section 7.6.1: each option is a token. Servers could read anything else in different ways.
#[test]
fn connection_is_a_short_list_of_tokens() {
    let many = ["a"; CONNECTION_OPTIONS_MAX + 1];
    for wrong in [&["\"if-match\""][..], &["if match"], &[":path"], &["x;y"], &["close, \u{e9}"], &many] {
        let headers = wrong
            .iter()
            .map(|line| (header::CONNECTION, HeaderValue::from_bytes(line.as_bytes()).expect("a value of a field")));
        assert_eq!(faults(&headers.collect()), Some(Fault::MalformedConnection), "{wrong:?}");
    }
    assert_eq!(faults(&lines(&many[1..])), None);
}

/// RFC 3875 section 4.1.18 makes one variable of both spellings.
#[test]
fn what_is_judged_or_written_here_has_one_spelling() {
    for name in [
        "if_match",
        "if-none_match",
        "lease_id",
        "fencing_token",
        "x_http_method_override",
        "x_original_url",
        "x.rewrite.url",
        "script_name",
        "x_script_name",
        "path_info",
        "x_forwarded_for",
        "x-forwarded_proto",
        "x.forwarded.for",
        "x~real~ip",
        "content_length",
        "transfer_encoding",
        "idempotency_key",
        "x_ms_lease_id",
        "x_amz_date",
        "x_api_key",
        "x_tenant",
        "x-shard",
    ] {
        assert_eq!(faults(&named(name)), Some(Fault::SecondSpelling), "{name}");
    }
    for name in ["x_own", "content_type", "x-tenant", "x_shard", "x-ms-meta-a_b", "x-amz-meta-if_match", "iff_match"] {
        assert_eq!(faults(&named(name)), None, "{name}");
    }
}

/// RFC 9112 section 6.1.
#[test]
fn a_body_has_one_coding() {
    let coded = |lines: &[&'static str]| {
        let lines = lines.iter().map(|line| (header::TRANSFER_ENCODING, HeaderValue::from_static(line)));
        fault(&lines.collect())
    };
    for lines in
        [&["chunked", "chunked"][..], &["chunked, Chunked"], &["gzip", "chunked"], &["chunked,"], &["", "chunked"]]
    {
        assert_eq!(coded(lines), Some(Fault::Codings), "{lines:?}");
    }
    assert_eq!((coded(&["Chunked"]), coded(&[])), (None, None));
    assert_eq!(coded(&["gzip, chunked"]), Some(Fault::UnknownCoding));
}

#[test]
fn each_line_of_the_table_counts_for_the_names_that_it_is_written_for() {
    assert!(TABLE.is_sorted_by_key(FieldRule::letter), "lines are looked up by their first letter");
    for field in &TABLE {
        let name = field.name.replace('*', "x");
        assert_eq!(of(&name).map(|found| found.name), Some(field.name), "an earlier line hides {name}");
        assert_eq!(name, name.to_ascii_lowercase());
    }
    assert!(METHOD_FIELDS.iter().all(|name| of(name.as_str()).is_some_and(|field| field.is_judged)));
}

#[test]
fn what_is_for_the_proxy_goes_to_no_guarded_upstream() {
    let name = HeaderName::from_static;
    for ours in ["lease-id", "proposed-lease-id", "lease-duration", "lease-holder", "lease-break-period", "expect"] {
        assert!(is_for_guard(&name(ours)) && !is_ours(&name(ours)), "{ours}");
    }
    assert!(is_ours(&name("fencing-token")) && is_for_guard(&name("fencing-token")));
    assert!(!is_for_guard(&name("if-match")) && !is_for_guard(&name("lease-agreement")));
}

/// `Connection` itself stays: pingora reads it.
#[test]
fn what_connection_names_and_is_there_can_be_taken_out() {
    let mut headers = lines(&["X-Own, upgrade, close", "x-gone, x-other"]);
    for name in ["x-own", "upgrade", "x-other", "x-kept"] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static("1"));
    }
    let taken: Vec<_> = nominated(&headers).map(|name| name.as_str().to_owned()).collect();
    assert_eq!(taken, ["x-own", "x-other"]);
}

/// `docs/http.md` quotes the table.
#[test]
fn the_table_is_told_as_it_is() {
    let lines = TABLE.iter().map(|field| {
        let writer = match field.writer {
            FieldWriter::Client => "the client",
            FieldWriter::Both => "the client and ifmatch",
            FieldWriter::Proxy => "ifmatch",
            FieldWriter::Hop => "each hop",
        };
        let remover = match field.remover {
            Remover::Nobody => "no server",
            Remover::Verdict => "the guard, once it is judged",
            Remover::Guard => "the guard",
            Remover::Proxy => "ifmatch",
            Remover::Hop => "each hop",
        };
        format!("| `{}` | {writer} | {remover} | {} |\n", field.name, if field.is_judged { "yes" } else { "no" })
    });
    let table = lines.collect::<String>();
    assert!(include_str!("../../../docs/http.md").contains(&format!("|---|---|---|---|\n{table}\n")), "write\n{table}");
}

#[test]
fn content_is_described_alike_if_the_answer_says_all_that_the_request_says() {
    let fields = |lines: &[(&'static str, &'static str)]| -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    };
    let shown = fields(&[("content-type", "text/plain; charset=UTF-8"), ("content-length", "3"), ("etag", "\"1\"")]);
    for (sent, expected) in [
        (&[][..], true),
        (&[("content-length", "9"), ("if-match", "\"0\"")], true),
        (&[("content-type", "Text/plain; charset=utf-8")], true),
        (&[("content-type", "text/html")], false),
        (&[("content-type", "text/plain; charset=UTF-8"), ("content-language", "de")], false),
    ] {
        assert_eq!(describe_alike(&fields(sent), &shown), expected, "{sent:?}");
    }
}
