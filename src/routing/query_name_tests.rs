//! Resources that the query names: the door, beside the parsers of queries that backends have.

use std::net::SocketAddr;

use http::{HeaderMap, Method, Version};
use percent_encoding::percent_decode_str;
use proptest::{collection::vec, prelude::*, sample::select};

use super::{
    door::{Door, Head, decide},
    table::RoutingTable,
};
use crate::{
    core::{http::client_address::ClientAddress, refusal::Code, resource::KeyTemplate},
    testing::{config, guard, route},
};

const NAME: &str = "doc_id";

/// The key of a write with this query on a route whose key is `{query.doc_id}`; `None` if the door refuses it.
fn key(query: &str) -> Option<String> {
    let server: SocketAddr = "127.0.0.1:9".parse().expect("an address");
    let mut of_query = route("/doc", Some(guard()), &[server]);
    of_query.key = KeyTemplate::parse("{query.doc_id}", &[]).expect("a template");
    let (routes, target) = (config(vec![of_query]).routes, format!("/doc?{query}"));
    let head = Head {
        method: &Method::PUT,
        version: Version::HTTP_11,
        host: "example.com",
        target: target.as_bytes(),
        headers: &HeaderMap::new(),
        client: ClientAddress::Local,
    };
    match decide(&RoutingTable::new(&routes), &head) {
        Door::Guarded(request) => Some(request.key.as_str().to_owned()),
        Door::Refuse { refusal, .. } => {
            assert_eq!(refusal.code, Code::AmbiguousTarget, "{query}");
            assert!(refusal.detail.contains("the resource"), "{}", refusal.detail);
            None
        }
        other => panic!("{query}: {other:?}"),
    }
}

/// The parameters of a query as spelled, between these separators.
fn pairs<'a>(query: &'a str, separators: &'static [char]) -> impl DoubleEndedIterator<Item = (&'a str, &'a str)> {
    query.split(separators).map(|pair| pair.split_once('=').unwrap_or((pair, ""))).filter(|(name, _)| !name.is_empty())
}

fn decoded(spelled: &str) -> String {
    percent_decode_str(&spelled.replace('+', " ")).decode_utf8_lossy().into_owned()
}

/// PHP's `$_GET`, and the first element where it is an array.
fn php(query: &str) -> Option<String> {
    let name = |spelled: &str| {
        let decoded = decoded(spelled);
        let until_nul = decoded.split('\0').next().unwrap_or_default().trim_start_matches(' ').to_owned();
        let (base, index) = until_nul.split_once('[').unwrap_or((&until_nul, "]"));
        let base = base.replace([' ', '.'], "_");
        if index.contains(']') { base } else { format!("{base}_{}", index.replace([' ', '.', '['], "_")) }
    };
    let (_, value) = pairs(query, &['&']).rfind(|(spelled, _)| name(spelled) == NAME)?;
    Some(decoded(value))
}

/// Rack's nested parameters, in the versions that also split at `;`.
fn rack(query: &str) -> Option<String> {
    let name = |spelled: &str| {
        let decoded = decoded(spelled);
        let begun = decoded.trim_start_matches([' ', '[', ']']).to_owned();
        begun.split(['[', ']']).next().unwrap_or_default().to_owned()
    };
    let (_, value) = pairs(query, &['&', ';']).rfind(|(spelled, _)| name(spelled) == NAME)?;
    Some(decoded(value))
}

/// ASP.NET's collection of parameters: without regard to case, and several values are joined.
fn asp_net(query: &str) -> Option<String> {
    let name = |spelled: &str| decoded(&spelled.replace("%u0064", "d")).trim_end_matches("[]").to_lowercase();
    let values: Vec<_> = pairs(query, &['&']).filter(|(spelled, _)| name(spelled) == NAME).collect();
    (!values.is_empty()).then(|| values.iter().map(|(_, value)| decoded(value)).collect::<Vec<_>>().join(","))
}

/// `URLSearchParams` of JavaScript: a `?` at the beginning is none of the first name, and the first value counts.
fn javascript(query: &str) -> Option<String> {
    let query = query.strip_prefix('?').unwrap_or(query);
    pairs(query, &['&']).find(|(spelled, _)| decoded(spelled) == NAME).map(|(_, value)| decoded(value))
}

/// Python's `parse_qs`: empty values are dropped, and the first one counts.
fn python(query: &str) -> Option<String> {
    pairs(query, &['&'])
        .find(|(spelled, value)| !value.is_empty() && decoded(spelled) == NAME)
        .map(|(_, value)| decoded(value))
}

/// nginx's `$arg_doc_id`: names are not decoded, and have no case.
fn nginx(query: &str) -> Option<String> {
    pairs(query, &['&']).find(|(spelled, _)| spelled.eq_ignore_ascii_case(NAME)).map(|(_, value)| decoded(value))
}

/// Returns the value that a reader finds in a query.
type Reader = fn(&str) -> Option<String>;

/// Each reader that finds another resource than the door does.
fn wrong_readers(query: &str) -> Vec<&'static str> {
    let Some(judged) = key(query) else { return Vec::new() };
    let readers: [(&str, Reader); 6] = [
        ("PHP", php),
        ("Rack", rack),
        ("ASP.NET", asp_net),
        ("JavaScript", javascript),
        ("Python", python),
        ("nginx", nginx),
    ];
    let resource = |read: Option<String>| read.filter(|value| !value.is_empty()).unwrap_or_else(|| "?".to_owned());
    let judged = judged.rsplit(':').next().expect("the identity ends with a colon");
    let is_wrong = |(_, read): &(&str, Reader)| resource(read(query)) != judged;
    readers.into_iter().filter(is_wrong).map(|(name, _)| name).collect()
}

/// Rule 18: no other spelling of the parameter's name passes, alone or beside the name itself.
#[test]
fn a_name_that_some_reader_takes_for_the_parameter_is_refused() {
    for other in [
        "doc.id=2",
        "doc+id=2",
        "doc%20id=2",
        "doc[id=2",
        "doc%5bid=2",
        "doc%2eid=2",
        "doc_id[]=2",
        "doc_id[x]=2",
        "[doc_id]=2",
        "DOC_ID=2",
        "Doc_Id=2",
        "+doc_id=2",
        "%20doc_id=2",
        "doc_id%00=2",
        "doc_id%00x=2",
        "%64oc_id=2",
        "%u0064oc_id=2",
        "doc%5Fid=2",
        "?doc_id=2",
        "a;doc_id=2",
    ] {
        for query in [other.to_owned(), format!("doc_id=1&{other}"), format!("{other}&doc_id=1")] {
            assert_eq!(key(&query), None, "{query}");
        }
    }
    assert_eq!(key("doc_id=1&doc_id=1"), None);
    assert_eq!(key(&format!("{}doc_id=1", "a=1&".repeat(1_000))), None);
}

/// Rule 18: no reader tells a parameter without a value from none.
#[test]
fn an_absent_parameter_is_an_empty_one() {
    for query in ["", "a=1", "doc_id", "doc_id=", "doc=1&id=2&docid=3"] {
        assert_eq!(key(query), key("other=1"), "{query}");
    }
    assert!(key(&format!("{}doc_id=1", "a=1&".repeat(900))).is_some());
    assert_eq!(key("doc_id=1&other.id=2&other[]=3"), key("doc_id=1"));
}

/// A character of the name, in a spelling that some reader takes for it.
fn spelled(character: char) -> impl Strategy<Value = String> {
    let separators = ["_", ".", "+", "%20", "[", "%5B", "%2E", "%5F", "-", ""].map(str::to_owned).to_vec();
    let letters = vec![
        character.to_string(),
        character.to_string(),
        character.to_ascii_uppercase().to_string(),
        format!("%{:02x}", u32::from(character)),
        format!("%u{:04X}", u32::from(character)),
    ];
    select(if character == '_' { separators } else { letters })
}

/// A parameter: its name is `doc_id` in some spelling, perhaps with something around it.
fn parameter() -> impl Strategy<Value = String> {
    let before = select(vec!["", "", "", "+", "%20", "[", "?", "x", "%00"]);
    let name = NAME.chars().map(spelled).collect::<Vec<_>>().prop_map(|characters| characters.concat());
    let exact = Just(NAME.to_owned());
    let after = select(vec!["", "", "", "[]", "[0]", "[", "]", "%00", "%00x", "+", "x"]);
    let value = select(vec!["=1", "=2", "=", ""]);
    (before, prop_oneof![1 => exact, 2 => name], after, value)
        .prop_map(|(before, name, after, value)| [before, &name, after, value].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    /// Rule 18: a query is refused, or each reader finds the resource that it is judged as.
    #[test]
    fn all_readers_of_a_query_find_the_same_resource(
        parameters in vec(prop_oneof![4 => parameter(), 1 => Just("a=1".to_owned())], 0..4),
        separator in select(vec!["&", "&", "&", "&&", ";"]),
    ) {
        let query = parameters.join(separator);
        prop_assert_eq!(wrong_readers(&query), Vec::<&str>::new(), "{}", query);
    }
}
