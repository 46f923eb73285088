//! All spellings and carriers of a method, and what each makes of a request.

use http::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;
use crate::{core::policy::LeaseGuards, testing::guard};

const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "PROPFIND"];

fn judging() -> GuardRules {
    GuardRules { method_override: MethodOverride::Judge, ..guard() }
}

fn method(text: &str) -> Method {
    Method::from_bytes(text.as_bytes()).expect("a method")
}

/// The methods of a request that has this method of its own, and names another in a field.
fn read(guard: &GuardRules, own: &str, named: Option<&str>) -> MethodReadings {
    let value = |named| (HeaderName::from_static("x-http-method"), HeaderValue::from_str(named).expect("a value"));
    let headers = named.map(value).into_iter().collect();
    MethodReadings::of(guard, &method(own), &headers, b"/docs/1").expect("one method")
}

/// The uses of each method, if it is the only reading.
fn uses_of(method: &str) -> Usage {
    match method {
        "GET" | "HEAD" | "PROPFIND" => Usage::Read,
        "DELETE" => Usage::Delete,
        _ => Usage::Write,
    }
}

/// Rule 18: a lease is judged by what each reading does.
#[test]
fn a_request_has_the_uses_of_all_its_readings() {
    for own in KNOWN {
        for named in KNOWN {
            let methods = read(&judging(), own, Some(named));
            let expected: Usages = [own, named].into_iter().map(uses_of).collect();
            assert_eq!(methods.usages, expected, "{own} {named}");
        }
    }
}

#[test]
fn the_cases_of_the_guards() {
    for (own, named, guards) in [
        ("get", None, LeaseGuards::Read),
        ("Delete", None, LeaseGuards::Delete),
        ("PUT", Some("DELETE"), LeaseGuards::Delete),
        ("PUT", Some("get"), LeaseGuards::Read),
        ("POST", Some("GET"), LeaseGuards::Read),
        ("propfind", None, LeaseGuards::Read),
    ] {
        let methods = read(&judging(), own, named);
        assert!(guards.covers_any(methods.usages), "{own} {named:?}");
        assert_ne!(guard().class_of(&methods.judged), MethodClass::Read, "{own} {named:?}");
    }
    assert!(!LeaseGuards::Delete.covers_any(read(&judging(), "PUT", Some("PATCH")).usages));
    assert!(!LeaseGuards::Read.covers_any(read(&judging(), "PUT", Some("PATCH")).usages));
    let (copied, moved) = (read(&judging(), "COPY", None).usages, read(&judging(), "MOVE", None).usages);
    let covered =
        |usages| [LeaseGuards::Read, LeaseGuards::Write, LeaseGuards::Delete].map(|all| all.covers_any(usages));
    assert_eq!((covered(copied), covered(moved)), ([true, false, false], [false, true, true]));
}

/// Rule 18: what one reading must carry, the request must carry.
#[test]
fn a_precondition_that_one_reading_needs_is_needed() {
    let posts = GuardRules { require_methods: vec![Method::POST], ..judging() };
    for (rules, own, named, judged) in [
        (&posts, "POST", Some("PATCH"), "POST"),
        (&posts, "PATCH", Some("POST"), "POST"),
        (&posts, "post", None, "POST"),
        (&posts, "put", None, "put"),
        (&judging(), "put", None, "PUT"),
        (&judging(), "delete", None, "DELETE"),
    ] {
        assert_eq!(read(rules, own, named).judged, judged, "{own} {named:?}");
    }
    let free = GuardRules { require: Require::Never, ..posts };
    assert_eq!(read(&free, "POST", Some("PATCH")).judged, "PATCH", "it is judged under a claim");
}

#[test]
fn a_method_of_the_configuration_is_read_in_any_case() {
    let rules = GuardRules { safe_methods: vec![method("report")], append_methods: vec![method("Log")], ..guard() };
    let report = read(&rules, "REPORT", None);
    assert_eq!((report.judged.as_str(), report.others), ("REPORT", vec![method("report")]));
    assert!(LeaseGuards::Read.covers_any(report.usages));
    assert_eq!(read(&rules, "Log", None).judged, "LOG", "the strictest");
}

proptest! {
    /// Rule 18: in any letter case of a method, its uses are at least those of the method in capitals.
    #[test]
    fn letter_case_hides_no_use(known in prop::sample::select(&KNOWN[..]), lower in prop::collection::vec(any::<bool>(), 8)) {
        let spelled: String = known
            .chars()
            .zip(lower)
            .map(|(one, lower)| if lower { one.to_ascii_lowercase() } else { one })
            .collect();
        let (plain, spelled) = (read(&guard(), known, None), read(&guard(), &spelled, None));
        prop_assert_eq!(spelled.usages.joined(plain.usages), spelled.usages);
        prop_assert!(strictness(&guard(), &spelled.judged) >= strictness(&guard(), &plain.judged));
    }

    /// Rule 18: every carrier of a method counts, in every spelling of its name.
    #[test]
    fn no_carrier_hides_a_method(
        carrier in 0..METHOD_FIELDS.len() + PARAMETERS.len(),
        encoded in prop::collection::vec(any::<bool>(), 22),
        named in prop::sample::select(&KNOWN[..]),
    ) {
        let mut headers = HeaderMap::new();
        let mut target = "/docs/1".to_owned();
        if let Some(field) = METHOD_FIELDS.get(carrier) {
            headers.insert(field.clone(), HeaderValue::from_str(&named.to_ascii_lowercase()).expect("a value"));
        } else {
            let name = PARAMETERS[carrier - METHOD_FIELDS.len()].bytes().zip(encoded);
            let name: String =
                name.map(|(octet, is)| if is { format!("%{octet:02X}") } else { char::from(octet).to_string() }).collect();
            target = format!("{target}?a=1&{name}={named}");
        }
        let methods = MethodReadings::of(&judging(), &Method::POST, &headers, target.as_bytes()).expect("a method");
        prop_assert!(methods.may_be(&[method(named)]));
        prop_assert!(methods.usages.contains(uses_of(named)));
        let refused = MethodReadings::of(&guard(), &Method::POST, &headers, target.as_bytes());
        prop_assert_eq!(refused.map_err(|refusal| refusal.code), Err(Code::MethodOverride));
    }
}

/// Rule 18: `OData` wraps methods in POST. The strictest reading is still the one that is judged.
#[test]
fn a_dialect_that_wraps_methods_reads_them_in_one_field_of_a_post_alone() {
    let quirks = crate::core::policy::Dialect::NAMES
        .iter()
        .find(|(name, _)| *name == "azure-table")
        .map(|(_, dialect)| dialect.quirks())
        .expect("the dialect has a name");
    let rules = GuardRules { quirks, ..guard() };
    for (own, target, fields, expected) in [
        ("POST", "/a", &[("x-http-method", "MERGE")][..], Some("MERGE")),
        ("POST", "/a", &[("x-http-method", "PUT")], Some("PUT")),
        ("POST", "/a", &[("x-http-method", "DELETE")], Some("DELETE")),
        ("POST", "/a", &[("x-http-method", "GET")], None),
        ("POST", "/a", &[("x-http-method", "merge")], None),
        ("PUT", "/a", &[("x-http-method", "MERGE")], None),
        ("POST", "/a?_method=MERGE", &[("x-http-method", "MERGE")], None),
        ("POST", "/a", &[("x-http-method", "MERGE"), ("x-http-method-override", "MERGE")], None),
        ("POST", "/a", &[("x-http-method-override", "MERGE")], None),
    ] {
        let headers: HeaderMap = fields
            .iter()
            .map(|(name, value)| (name.parse::<http::HeaderName>().expect("a name"), value.parse().expect("a value")))
            .collect();
        let own = Method::from_bytes(own.as_bytes()).expect("a method");
        let read = MethodReadings::of(&rules, &own, &headers, target.as_bytes()).ok();
        assert_eq!(read.as_ref().map(|methods| methods.judged.as_str()), expected, "{own} {target} {fields:?}");
        assert!(MethodReadings::of(&guard(), &own, &headers, target.as_bytes()).is_err(), "in no other dialect");
        if let Some(methods) = read {
            assert!(methods.may_be(&[Method::POST]), "a backend may also read the POST");
        }
    }
}
