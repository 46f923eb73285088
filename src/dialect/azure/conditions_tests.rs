//! Conditional fields: the permitted combinations, and the spelling of tags.

use http::header::IF_NONE_MATCH;

use super::*;

const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, value.parse().unwrap());
    }
    headers
}

fn code(operation: AzureOperation, fields: &[(&'static str, &'static str)]) -> &'static str {
    match read(operation, &headers(fields)) {
        Ok(_) => "ok",
        Err(refusal) => refusal.service.expect("Azure's name").code,
    }
}

fn tag_of(value: &'static str) -> Option<TagCondition> {
    read(AzureOperation::PutBlob, &headers(&[("if-match", value)])).unwrap().if_match
}

fn one(tag: &'static str) -> TagCondition {
    TagCondition::Tags(vec![EntityTag::strong(tag).unwrap()])
}

#[test]
fn a_tag_needs_no_quotes() {
    for spelling in ["\"0x8D1\"", "0x8D1", " 0x8D1 "] {
        assert_eq!(tag_of(spelling), Some(one("0x8D1")), "{spelling}");
    }
    assert_eq!(tag_of("W/\"a\""), Some(TagCondition::Tags(vec![EntityTag::weak("a").unwrap()])));
    assert_eq!(tag_of("\"a,b\""), Some(one("a,b")));
    assert_eq!(tag_of("*"), Some(TagCondition::Any));
}

#[test]
fn what_is_no_tag_or_no_date_is_refused() {
    for value in ["", ",", "*,*", "\"a\",*"] {
        assert_eq!(code(AzureOperation::PutBlob, &[("if-match", value)]), "InvalidHeaderValue", "{value:?}");
        assert_eq!(code(AzureOperation::ReadBlob, &[("if-none-match", value)]), "InvalidHeaderValue", "{value:?}");
    }
    assert_eq!(code(AzureOperation::ReadBlob, &[("if-match", ",")]), "InvalidHeaderValue");
    assert_eq!(code(AzureOperation::ReadBlob, &[("if-modified-since", "yesterday")]), "InvalidHeaderValue");
    assert_eq!(
        code(AzureOperation::PutBlob, &[("if-unmodified-since", DATE), ("if-unmodified-since", DATE)]),
        "InvalidHeaderValue"
    );
}

/// No state has such a tag. A write that is meant for all other states would go through, so it is refused.
#[test]
fn a_tag_that_cannot_be_spelled_matches_nothing() {
    for value in ["\"a", "a\"", "\"a\" b", "a b", "\"a\"b"] {
        assert_eq!(tag_of(value), Some(TagCondition::Tags(vec![])), "{value:?}");
        for operation in [AzureOperation::PutBlob, AzureOperation::ReadBlob] {
            assert_eq!(code(operation, &[("if-none-match", value)]), "InvalidHeaderValue", "{value:?}");
        }
    }
}

/// Every combination of the four fields, for a read and for a write.
#[test]
fn a_write_takes_one_condition_or_one_of_two_pairs() {
    let fields =
        [("if-match", "\"a\""), ("if-none-match", "\"a\""), ("if-modified-since", DATE), ("if-unmodified-since", DATE)];
    for set in 0..16_u8 {
        let given: Vec<_> = (0..4).filter(|place| set & (1 << place) != 0).map(|place| fields[place]).collect();
        let names: Vec<_> = given.iter().map(|(name, _)| *name).collect();
        let is_pair = [["if-match", "if-unmodified-since"], ["if-none-match", "if-modified-since"]]
            .iter()
            .any(|pair| names == pair);
        let expected = if names.len() < 2 || is_pair { "ok" } else { "MultipleConditionHeadersNotSupported" };
        for operation in [AzureOperation::PutBlob, AzureOperation::DeleteBlob, AzureOperation::LeaseBlob] {
            assert_eq!(code(operation, &given), expected, "{operation:?} {names:?}");
        }
        assert_eq!(code(AzureOperation::ReadBlob, &given), "ok", "{names:?}");
    }
}

#[test]
fn a_read_takes_a_list_and_a_write_takes_one_tag() {
    for fields in
        [&[("if-match", "\"a\",b")][..], &[("if-none-match", "\"a\", \"b\"")], &[("if-match", "a"), ("if-match", "b")]]
    {
        assert_eq!(code(AzureOperation::PutBlob, fields), "MultipleConditionHeadersNotSupported", "{fields:?}");
        assert_eq!(code(AzureOperation::ReadBlob, fields), "ok", "{fields:?}");
    }
}

#[test]
fn a_read_with_a_list_that_holds_a_star_takes_any_state() {
    for value in ["*,a", "\"a\", *", "*,*"] {
        let conditions = read(AzureOperation::ReadBlob, &headers(&[("if-match", value)]));
        assert_eq!(conditions.map(|conditions| conditions.if_match), Ok(Some(TagCondition::Any)), "{value:?}");
    }
}

#[test]
fn only_a_put_can_be_kept_from_overwriting() {
    let any = headers(&[("if-none-match", "*")]);
    let kept = |operation| read(operation, &any).map(|conditions| conditions.if_none_match);
    assert_eq!(kept(AzureOperation::PutBlob), Ok(Some(TagCondition::Any)));
    assert_eq!(kept(AzureOperation::SetMetadata), Ok(Some(TagCondition::Any)));
    assert_eq!(kept(AzureOperation::PutBlockList), Ok(Some(TagCondition::Any)));
    assert_eq!(kept(AzureOperation::DeleteBlob), Ok(None));
    assert_eq!(kept(AzureOperation::LeaseBlob), Ok(None));
    assert_eq!(code(AzureOperation::ReadBlob, &[("if-none-match", "*")]), "UnsatisfiableCondition");
    assert!(any.contains_key(IF_NONE_MATCH));
}

#[test]
fn a_container_takes_dates_alone_and_its_creation_demands_that_there_is_none() {
    use AzureOperation::{CreateContainer, DeleteContainer, LeaseContainer, ReadContainer};
    for operation in [CreateContainer, DeleteContainer, LeaseContainer, ReadContainer] {
        assert_eq!(code(operation, &[("if-match", "*")]), "UnsupportedHeader");
        assert_eq!(code(operation, &[("if-none-match", "\"a\"")]), "UnsupportedHeader");
        assert_eq!(code(operation, &[("if-modified-since", DATE)]), "ok");
    }
    let created = read(CreateContainer, &HeaderMap::new()).unwrap();
    assert_eq!(created.if_none_match, Some(TagCondition::Any));
}
