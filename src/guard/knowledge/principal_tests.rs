//! Tests of who a client is, and of what it may know.

use super::*;
use crate::testing::guard;

const VERSION: Revision = Revision(7);

fn rules(cookies: &[&str]) -> GuardRules {
    GuardRules {
        identity_headers: vec![header::AUTHORIZATION, header::COOKIE],
        identity_cookies: cookies.iter().map(|&name| name.to_owned()).collect(),
        identity_query: CREDENTIAL_PARAMETERS.map(str::to_owned).to_vec(),
        ..guard()
    }
}

fn principal(fields: &[(HeaderName, &'static str)]) -> Principal {
    let headers = fields.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
    of(&headers, None, &rules(&[]))
}

fn of(headers: &HeaderMap, certificate: Option<&[u8]>, rules: &GuardRules) -> Principal {
    Principal::of(Presented { headers, query: None, certificate }, rules)
}

fn by_query(query: &str) -> Principal {
    let presented = Presented { headers: &HeaderMap::new(), query: Some(query.as_bytes()), certificate: None };
    Principal::of(presented, &rules(&[]))
}

#[test]
fn another_certificate_is_another_principal() {
    let alice = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static("alice"))]);
    let with = |certificate: Option<&[u8]>| of(&alice, certificate, &rules(&[]));
    assert_eq!(with(Some(b"one")), with(Some(b"one")));
    assert_ne!(with(Some(b"one")), with(Some(b"two")));
    assert_ne!(with(Some(b"one")), with(None));
    assert_ne!(of(&HeaderMap::new(), Some(b"one"), &rules(&[])), principal(&[]));
}

#[test]
fn another_credential_in_the_query_is_another_principal() {
    for name in CREDENTIAL_PARAMETERS {
        let alice = by_query(&format!("a=1&{name}=alice"));
        assert_eq!(alice, by_query(&format!("{name}=alice;b=2")), "{name}");
        assert_ne!(alice, by_query(&format!("{name}=bob")), "{name}");
        assert_ne!(alice, by_query(&format!("{name}=alice&{name}=bob")), "{name}: a backend takes one of them");
        let other_case = name.to_ascii_uppercase();
        assert!(!by_query(&format!("{other_case}=alice")).is_anonymous(), "{other_case}");
        assert!(!alice.is_anonymous() && alice.secret().is_some(), "{name}");
    }
    assert!(by_query("a=1&tokens=2").is_anonymous());
    let nothing = GuardRules { identity_query: Vec::new(), ..rules(&[]) };
    let presented = Presented { headers: &HeaderMap::new(), query: Some(b"token=alice"), certificate: None };
    assert!(Principal::of(presented, &nothing).is_anonymous());
    let sent = |query: &'static [u8]| {
        let presented = Presented { query: Some(query), ..presented };
        Principal::of(presented, &nothing).of_attempt(presented, &nothing)
    };
    assert_eq!(sent(b"token=alice").owner, sent(b"token=bob").owner);
    assert_ne!(sent(b"token=alice").credentials, sent(b"token=bob").credentials);
}

/// Each URL has another signature, and a lease outlives it. No answer comes from memory by the signer's name.
#[test]
fn a_lease_of_signed_urls_is_bound_to_who_signs() {
    for (one, again, other) in [
        (
            "X-Amz-Credential=A%2F1&X-Amz-Signature=1",
            "X-Amz-Credential=A%2F2&X-Amz-Signature=2",
            "X-Amz-Credential=B%2F1&X-Amz-Signature=1",
        ),
        (
            "X-Goog-Credential=a%2F1&X-Goog-Signature=1",
            "X-Goog-Credential=a%2F2&X-Goog-Signature=2",
            "X-Goog-Credential=b%2F1&X-Goog-Signature=1",
        ),
        ("AWSAccessKeyId=A&Signature=1", "AWSAccessKeyId=A&Signature=2", "AWSAccessKeyId=B&Signature=1"),
    ] {
        let (one, again, other) = (by_query(one), by_query(again), by_query(other));
        assert_eq!(one.holder(), again.holder());
        assert_ne!(one.holder(), other.holder());
        assert_ne!(one, again);
        assert!(one.signs() && one.secret().is_none());
    }
    let shared = |query| by_query(query).holder();
    assert_ne!(shared("sv=1&sig=1"), shared("sv=1&sig=2"), "nothing else names a shared access signature");
    assert_ne!(shared("X-Amz-Credential=A&token=1"), shared("X-Amz-Credential=A&token=2"), "all others count");
}

#[test]
fn other_credentials_are_another_principal() {
    let anonymous = principal(&[]);
    let alice = principal(&[(header::AUTHORIZATION, "alice")]);
    assert_ne!(alice, anonymous);
    assert_ne!(alice, principal(&[(header::AUTHORIZATION, "bob")]));
    assert_ne!(alice, principal(&[(header::COOKIE, "alice")]));
    assert_eq!(alice, principal(&[(header::AUTHORIZATION, "alice"), (header::ACCEPT, "text/plain")]));
}

/// DESIGN, section 8: a page's analytics must not cost an editor the lease.
#[test]
fn a_lease_is_bound_to_no_cookie_that_is_not_named() {
    let with = |cookies: &[&str], field: &'static str| {
        let fields = [(header::AUTHORIZATION, "alice"), (header::COOKIE, field)];
        let fields = fields.map(|(name, value)| (name, HeaderValue::from_static(value)));
        of(&HeaderMap::from_iter(fields), None, &rules(cookies))
    };
    let unnamed = |field| with(&[], field);
    assert_eq!(unnamed("analytics=1").holder(), unnamed("analytics=2").holder());
    assert_ne!(unnamed("analytics=1"), unnamed("analytics=2"), "what is told from memory goes by the whole field");
    let named = |field| with(&["session"], field);
    assert_eq!(named("session=a; analytics=1"), named("analytics=2;session=a"));
    assert_ne!(named("session=a").holder(), named("session=b").holder());
    assert_ne!(named("session=a"), named("sessions=a"));
    assert_ne!(named("session=a").holder(), named("analytics=1").holder());
    let headers = HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static("analytics=1"))]);
    assert!(of(&headers, None, &rules(&["session"])).is_anonymous());
}

#[test]
fn a_secret_name_is_made_of_what_nobody_else_can_name() {
    let (bearer, shared_key) = ((header::AUTHORIZATION, "Bearer a"), (header::AUTHORIZATION, "SharedKey a:1"));
    let (one, two) = ((header::COOKIE, "session=1"), (header::COOKIE, "session=2"));
    let secret = |fields: &[(HeaderName, &'static str)]| principal(fields).secret();
    let alone = |field: &(HeaderName, &'static str)| secret(std::slice::from_ref(field));
    assert_eq!((secret(&[]), alone(&shared_key), secret(&[shared_key, one.clone()])), (None, None, None));
    assert_eq!(by_query("X-Amz-Credential=A%2F1&X-Amz-Signature=1").secret(), None);
    assert!(alone(&bearer).is_some() && alone(&one).is_some());
    assert_eq!(secret(&[bearer.clone(), one.clone()]), secret(&[bearer, two.clone()]));
    assert_ne!(alone(&one), alone(&two));
    assert_ne!(by_query("sig=1").secret(), by_query("sig=2").secret());
}

#[test]
fn tags_name_who_signs_and_nothing_else_does() {
    let (key, nothing) = (ResourceKey::from_text("a"), HeaderMap::new());
    let labelled = |principal: Principal| principal.labelled_variant(&key, b"/a", &nothing);
    let by = |credentials| principal(&[(header::AUTHORIZATION, credentials)]);
    for (one, again, other) in [
        ("SharedKey alice:1", "SharedKey alice:2", "SharedKey bob:1"),
        (
            "AWS4-HMAC-SHA256 Credential=A/1, Signature=1",
            "AWS4-HMAC-SHA256 Credential=A/2, Signature=2",
            "AWS4-HMAC-SHA256 Credential=B/1, Signature=1",
        ),
    ] {
        assert_eq!(labelled(by(one)), labelled(by(again)));
        assert_ne!(labelled(by(one)), labelled(by(other)));
        assert_ne!(by(one), by(again));
        assert_ne!(by(one).name(), by(again).name());
        let variant = |principal: Principal| principal.variant(&key, b"/a", &nothing);
        assert_ne!(variant(by(one)), variant(by(again)));
        let fields = |cookie| [(header::AUTHORIZATION, one), (header::COOKIE, cookie)];
        assert_ne!(labelled(principal(&fields("a"))), labelled(principal(&fields("b"))), "all other fields count");
    }
    assert_ne!(labelled(by("Bearer a")), labelled(by("Bearer b")));
    assert_eq!(labelled(by("Bearer a")), by("Bearer a").variant(&key, b"/a", &nothing));
}

#[test]
fn what_a_principal_may_know_it_may_know_for_a_time() {
    let read_grants = ReadGrants::new();
    let (key, ttl) = (ResourceKey::from_text("a"), Duration::from_secs(1));
    let (alice, start) = (principal(&[(header::AUTHORIZATION, "alice")]), StoreTime::default());
    assert!(!read_grants.may_know(&key, alice, start));
    read_grants.was_let_read(&key, alice, (start, VERSION), ttl);
    assert!(read_grants.may_know(&key, alice, start));
    assert!(!read_grants.may_know(&key, principal(&[]), start), "no other principal may");
    assert!(!read_grants.may_know(&key, alice, start.plus(ttl)));
}

/// A probe with the client's credentials shows the client nothing.
#[test]
fn the_last_version_that_a_principal_was_shown_is_remembered() {
    let read_grants = ReadGrants::new();
    let (key, ttl) = (ResourceKey::from_text("a"), Duration::from_secs(1));
    let (alice, start) = (principal(&[(header::AUTHORIZATION, "alice")]), StoreTime::default());
    read_grants.was_let_read(&key, alice, (start, VERSION), ttl);
    assert_eq!(read_grants.last_read(&key, alice), None);
    read_grants.was_shown_to(&key, alice, (start, VERSION), ttl);
    read_grants.was_let_read(&key, alice, (start.plus(ttl), Revision(8)), ttl);
    assert_eq!(read_grants.last_read(&key, alice), Some(VERSION));
    assert_eq!(read_grants.last_read(&key, principal(&[])), None);
    read_grants.was_shown_to(&key, alice, (start, Revision(9)), ttl);
    assert_eq!(read_grants.last_read(&key, alice), Some(Revision(9)));
}

#[test]
fn reading_again_renews_what_may_be_known() {
    let read_grants = ReadGrants::new();
    let (key, ttl) = (ResourceKey::from_text("a"), Duration::from_secs(1));
    let (alice, start) = (principal(&[]), StoreTime::default());
    read_grants.was_let_read(&key, alice, (start, VERSION), ttl);
    let later = start.plus(ttl / 2);
    read_grants.was_let_read(&key, alice, (later, VERSION), ttl);
    assert!(read_grants.may_know(&key, alice, start.plus(ttl)));
}

#[test]
fn what_any_principal_was_shown_is_there_until_it_is_removed() {
    let read_grants = ReadGrants::new();
    let (key, ttl) = (ResourceKey::from_text("a"), Duration::from_secs(1));
    let (alice, start) = (principal(&[(header::AUTHORIZATION, "alice")]), StoreTime::default());
    assert!(!read_grants.is_shown(&key, (start, VERSION)));
    read_grants.was_let_read(&key, alice, (start, VERSION), ttl);
    assert!(read_grants.is_shown(&key, (start, VERSION)) && !read_grants.is_shown(&key, (start.plus(ttl), VERSION)));
    assert!(!read_grants.is_shown(&key, (start, Revision(8))), "it may have been removed");
    read_grants.was_removed(&key);
    assert!(!read_grants.is_shown(&key, (start, VERSION)) && read_grants.may_know(&key, alice, start));
    read_grants.was_let_read(&key, alice, (start, VERSION), ttl);
    assert!(read_grants.is_shown(&key, (start, VERSION)), "it was created again");
}
