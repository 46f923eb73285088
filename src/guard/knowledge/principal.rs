//! The identity of a client, as far as a proxy can tell, and what the client may know (DESIGN, section 8).

use std::{
    hash::{Hash, Hasher},
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use moka::sync::Cache;

use crate::core::{
    credentials::{CREDENTIAL_FIELDS, signer, signer_of},
    first_attempt::AttemptSender,
    lease::PrincipalName,
    parts_hash::{PartsHasher, half},
    policy::GuardRules,
    record::VariantName,
    resource::{KeyDigest, ResourceKey},
    time::StoreTime,
};

/// The number of pairs of a principal and a resource that are remembered. Each takes about 100 bytes, whatever the
/// length of the resource's name. A dropped pair costs its principal one request to the upstream.
const PAIRS_MAX: u64 = 200_000;

/// The name that a certificate has in the hash, where credentials have the name of their field. No field has this
/// name.
const CERTIFICATE: &[u8] = b"client certificate";

/// A client's identity: a hash of its credentials. All clients without credentials are one principal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Principal {
    /// The hash of all credentials. It decides what the proxy may tell the client without the backend.
    whole: [u8; 16],
    /// Like `whole`, but for a client that signs each request anew: of a signature only the signer's name counts.
    /// This hash proves nothing, and only labels what the backend has shown.
    signer: [u8; 16],
    /// Like `signer`, but without cookies that the route does not name: a page's analytics may change those at any time.
    holder: [u8; 16],
}

impl Hash for Principal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The other parts follow from the same credentials.
        state.write(&self.whole);
    }
}

/// The cookies that are part of an identity.
#[derive(Clone, Copy)]
enum Cookies<'a> {
    /// The whole field.
    All,
    /// Those with these names.
    Named(&'a [String]),
    /// None of them.
    Without,
}

impl<'a> Cookies<'a> {
    /// Those that the route declares.
    fn of(rules: &'a GuardRules) -> Self {
        let names = rules.identity_cookies.as_slice();
        if names.is_empty() { Self::All } else { Self::Named(names) }
    }
}

/// The hash of an identity without any credentials.
const ANONYMOUS: [u8; 16] = [0; 16];

impl Principal {
    /// The principal behind a request. The client may have proved that it holds a certificate.
    pub(crate) fn of(headers: &HeaderMap, rules: &GuardRules, certificate: Option<&[u8]>) -> Self {
        // Most requests have fewer fields than there are names to look up.
        if certificate.is_none() && !headers.keys().any(|name| rules.identity_headers.contains(name)) {
            return Self { whole: ANONYMOUS, signer: ANONYMOUS, holder: ANONYMOUS };
        }
        let identity = |signs, cookies| identity(headers, &rules.identity_headers, certificate, signs, cookies);
        let (names, cookies) = (rules.identity_cookies.as_slice(), Cookies::of(rules));
        let whole = identity(false, cookies);
        let signs = signer(headers).is_some() && rules.identity_headers.contains(&header::AUTHORIZATION);
        let signer = if signs { identity(true, cookies) } else { whole };
        let has_others = names.is_empty() && headers.contains_key(header::COOKIE);
        let holder = if has_others { identity(signs, Cookies::Without) } else { signer };
        Self { whole, signer, holder }
    }

    /// Whether the principal is that of all clients without credentials.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.whole == ANONYMOUS
    }

    /// Whether the client has credentials that nobody else can name. Signatures have a part that others know, and
    /// cookies that are no part of the identity do not count.
    pub(crate) fn is_secret(&self) -> bool {
        !self.is_anonymous() && self.whole == self.holder
    }

    /// The name of a client with all its credentials.
    pub(crate) fn name(self) -> [u8; 16] {
        self.whole
    }

    /// The sender of an attempt at a write: the owner of its key, with all credentials of the request. Those that the
    /// route does not declare as its identity count too, since they decide what the backend lets the sender read.
    pub(crate) fn of_attempt(
        self,
        headers: &HeaderMap,
        rules: &GuardRules,
        certificate: Option<&[u8]>,
    ) -> AttemptSender {
        let others = CREDENTIAL_FIELDS.iter().filter(|name| !rules.identity_headers.contains(name));
        let fields: Vec<HeaderName> = rules.identity_headers.iter().chain(others).cloned().collect();
        let credentials = identity(headers, &fields, certificate, false, Cookies::of(rules));
        AttemptSender { owner: self.whole, credentials }
    }

    /// The name that leases are bound to.
    pub(crate) fn holder(self) -> PrincipalName {
        self.holder
    }

    /// The name of the variant that a request of this principal selects, before `Vary` counts.
    pub(crate) fn variant(&self, key: &ResourceKey, target: &[u8], headers: &HeaderMap) -> VariantName {
        variant(self.whole, key, target, headers)
    }

    /// Like [`Principal::variant`], but as tags name the variant. All requests of a client that signs each one anew
    /// share one name.
    pub(crate) fn labelled_variant(&self, key: &ResourceKey, target: &[u8], headers: &HeaderMap) -> VariantName {
        variant(self.signer, key, target, headers)
    }

    /// Whether the client signs each request anew.
    pub(crate) fn signs(&self) -> bool {
        self.whole != self.signer
    }
}

/// A hash of the fields and the certificate that identify a client. `by_name` replaces a signature by the signer's
/// name.
fn identity(
    headers: &HeaderMap,
    identity_headers: &[HeaderName],
    certificate: Option<&[u8]>,
    by_name: bool,
    cookies: Cookies<'_>,
) -> [u8; 16] {
    // Most clients have none, and a hasher takes 2 KiB.
    let mut hasher: Option<PartsHasher> = None;
    let mut add = |name: &[u8], value: &[u8]| {
        hasher.get_or_insert_default().add(name).add(value);
    };
    for name in identity_headers {
        let values = headers.get_all(name).iter().map(HeaderValue::as_bytes);
        match cookies {
            Cookies::Without if *name == header::COOKIE => {}
            Cookies::Named(names) if *name == header::COOKIE => {
                values.flat_map(|value| named_cookies(value, names)).for_each(|cookie| add(b"cookie", cookie));
            }
            _ if by_name && *name == header::AUTHORIZATION => {
                values.for_each(|value| add(name.as_str().as_bytes(), signer_of(value).unwrap_or(value)));
            }
            _ => values.for_each(|value| add(name.as_str().as_bytes(), value)),
        }
    }
    if let Some(certificate) = certificate {
        add(CERTIFICATE, certificate);
    }
    hasher.map_or(ANONYMOUS, |hasher| hasher.half())
}

/// Returns the cookies with these names in a Cookie field (RFC 6265 section 4.2.1), each with its value.
fn named_cookies<'a>(field: &'a [u8], names: &[String]) -> impl Iterator<Item = &'a [u8]> {
    field.split(|&octet| octet == b';').map(<[u8]>::trim_ascii).filter(move |cookie| {
        let name = cookie.split(|&octet| octet == b'=').next().unwrap_or_default();
        names.iter().any(|each| each.as_bytes() == name)
    })
}

fn variant(principal: [u8; 16], key: &ResourceKey, target: &[u8], headers: &HeaderMap) -> VariantName {
    let field = |name| headers.get(name).map_or(&[][..], HeaderValue::as_bytes);
    // One hash of the joined parts is cheaper than a hasher for so few bytes. The first two parts have a fixed
    // length, and none of the others contains the zero octet between them.
    let parts = [&principal, &key.digest(), target, b"\0", field(header::HOST), b"\0", field(header::ORIGIN)];
    VariantName(half(&blake3::hash(&parts.concat())))
}

/// The resources that the upstream has let each principal read, and the time until which that counts.
pub(crate) struct ReadGrants(Cache<(Principal, KeyDigest), StoreTime>);

impl ReadGrants {
    /// Starts without any grants.
    pub(crate) fn new() -> Self {
        Self(Cache::new(PAIRS_MAX))
    }

    /// Notes that the upstream has let the principal read the resource.
    pub(crate) fn was_let_read(&self, key: &ResourceKey, principal: Principal, now: StoreTime, identity_ttl: Duration) {
        let until = now.plus(identity_ttl);
        let pair = (principal, key.digest());
        // Each insertion costs the cache some bookkeeping. One per quarter of `identity_ttl` is enough.
        let is_fresh = self.0.get(&pair).is_some_and(|known| known.until(until) < identity_ttl / 4);
        if !is_fresh {
            self.0.insert(pair, until);
        }
    }

    /// Forgets all grants.
    pub(crate) fn forget_all(&self) {
        self.0.invalidate_all();
    }

    /// Whether the principal may know the state of the resource.
    pub(crate) fn may_know(&self, key: &ResourceKey, principal: Principal, now: StoreTime) -> bool {
        self.0.get(&(principal, key.digest())).is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::testing::guard;

    fn rules(cookies: &[&str]) -> GuardRules {
        GuardRules {
            identity_headers: vec![header::AUTHORIZATION, header::COOKIE],
            identity_cookies: cookies.iter().map(|&name| name.to_owned()).collect(),
            ..guard()
        }
    }

    fn principal(fields: &[(HeaderName, &'static str)]) -> Principal {
        let headers = fields.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
        Principal::of(&headers, &rules(&[]), None)
    }

    #[test]
    fn another_certificate_is_another_principal() {
        let of = |certificate: Option<&[u8]>| {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static("alice"))]);
            Principal::of(&headers, &rules(&[]), certificate)
        };
        assert_eq!(of(Some(b"one")), of(Some(b"one")));
        assert_ne!(of(Some(b"one")), of(Some(b"two")));
        assert_ne!(of(Some(b"one")), of(None));
        assert_ne!(Principal::of(&HeaderMap::new(), &rules(&[]), Some(b"one")), principal(&[]));
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
        let of = |cookies: &[&str], field: &'static str| {
            let fields = [(header::AUTHORIZATION, "alice"), (header::COOKIE, field)];
            let fields = fields.map(|(name, value)| (name, HeaderValue::from_static(value)));
            Principal::of(&HeaderMap::from_iter(fields), &rules(cookies), None)
        };
        assert_eq!(of(&[], "analytics=1").holder(), of(&[], "analytics=2").holder());
        assert_ne!(of(&[], "analytics=1"), of(&[], "analytics=2"), "what is told from memory goes by the whole field");
        let named = |field| of(&["session"], field);
        assert_eq!(named("session=a; analytics=1"), named("analytics=2;session=a"));
        assert_ne!(named("session=a").holder(), named("session=b").holder());
        assert_ne!(named("session=a"), named("sessions=a"));
        assert_ne!(named("session=a").holder(), named("analytics=1").holder());
        let headers = HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static("analytics=1"))]);
        assert!(Principal::of(&headers, &rules(&["session"]), None).is_anonymous());
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
        read_grants.was_let_read(&key, alice, start, ttl);
        assert!(read_grants.may_know(&key, alice, start));
        assert!(!read_grants.may_know(&key, principal(&[]), start), "no other principal may");
        assert!(!read_grants.may_know(&key, alice, start.plus(ttl)));
    }

    #[test]
    fn reading_again_renews_what_may_be_known() {
        let read_grants = ReadGrants::new();
        let (key, ttl) = (ResourceKey::from_text("a"), Duration::from_secs(1));
        let (alice, start) = (principal(&[]), StoreTime::default());
        read_grants.was_let_read(&key, alice, start, ttl);
        let later = start.plus(ttl / 2);
        read_grants.was_let_read(&key, alice, later, ttl);
        assert!(read_grants.may_know(&key, alice, start.plus(ttl)));
    }
}
