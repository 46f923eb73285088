//! The identity of a client, as well as a proxy can tell, and the resources that the client may know (DESIGN, section
//! 8).

use std::{
    hash::{Hash, Hasher},
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::digest_cache::{DigestCache, of_entries};
use crate::core::{
    http::credentials::{
        CREDENTIAL_FIELDS, CREDENTIAL_PARAMETERS, parameters, signer, signer_of, signs_url, url_signer,
    },
    lease::PrincipalName,
    policy::GuardRules,
    records::{
        first_attempt::AttemptSender,
        record::{Revision, VariantName},
    },
    resource::{KeyDigest, ResourceKey},
    tags::parts_hash::{PartsHasher, half},
    time::StoreTime,
};

/// The number of pairs of a principal and a resource that are remembered. Each takes about 100 bytes, for a name of any
/// length. A dropped pair costs its principal one request to the upstream.
const PAIRS_MAX: u64 = 200_000;

/// The name that a parameter of the query has in the hash.
const PARAMETER: &[u8] = b"query parameter";

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
    /// The cookies with these names.
    Named(&'a [String]),
    /// None of them.
    Without,
}

impl<'a> Cookies<'a> {
    /// Returns the cookies that the route declares.
    fn of(rules: &'a GuardRules) -> Self {
        let names = rules.identity_cookies.as_slice();
        if names.is_empty() { Self::All } else { Self::Named(names) }
    }
}

/// The place of all that may be credentials in a request.
#[derive(Clone, Copy)]
pub(crate) struct Presented<'a> {
    /// The fields of the request.
    pub(crate) headers: &'a HeaderMap,
    /// The query as the client sent it.
    pub(crate) query: Option<&'a [u8]>,
    /// The certificate that the client has proved to hold.
    pub(crate) certificate: Option<&'a [u8]>,
}

/// The parts of a request that count as credentials.
struct Declared<'a> {
    headers: &'a [HeaderName],
    parameters: &'a [String],
    cookies: Cookies<'a>,
    /// True if the signer's name counts instead of a signature.
    by_name: bool,
}

/// The hash of an identity without any credentials.
const ANONYMOUS: [u8; 16] = [0; 16];

impl Principal {
    /// The principal behind a request.
    pub(crate) fn of(presented: Presented<'_>, rules: &GuardRules) -> Self {
        let Presented { headers, query, certificate } = presented;
        // Most requests have fewer fields than there are names to look up.
        let query = query.filter(|query| parameters(query, &rules.identity_query).next().is_some());
        let has_field = || headers.keys().any(|name| rules.identity_headers.contains(name));
        if certificate.is_none() && query.is_none() && !has_field() {
            return Self { whole: ANONYMOUS, signer: ANONYMOUS, holder: ANONYMOUS };
        }
        let (headers_named, parameters) = (&rules.identity_headers, &rules.identity_query);
        let identity = |by_name, cookies| {
            let presented = Presented { query, ..presented };
            identity(presented, &Declared { headers: headers_named, parameters, cookies, by_name })
        };
        let (names, cookies) = (rules.identity_cookies.as_slice(), Cookies::of(rules));
        let whole = identity(false, cookies);
        let signs_field = signer(headers).is_some() && headers_named.contains(&header::AUTHORIZATION);
        let signs = signs_field || query.is_some_and(|query| url_signer(query).is_some());
        let signer = if signs { identity(true, cookies) } else { whole };
        let has_others = names.is_empty() && headers.contains_key(header::COOKIE);
        let holder = if has_others { identity(signs, Cookies::Without) } else { signer };
        Self { whole, signer, holder }
    }

    /// True if the principal is that of all clients without credentials.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.whole == ANONYMOUS
    }

    /// The name by which an operator tells clients apart; `None` for a client without credentials. Cookies count if
    /// nothing else does.
    pub(crate) fn shown(self) -> Option<PrincipalName> {
        let name = if self.holder == ANONYMOUS { self.whole } else { self.holder };
        (name != ANONYMOUS).then_some(name)
    }

    /// Returns the name of a client whose credentials no other client can name. The name of a signer is known to
    /// others. Cookies count only without other credentials: a page's analytics may change them at any time.
    pub(crate) fn secret(self) -> Option<PrincipalName> {
        self.shown().filter(|_| !self.signs())
    }

    /// The name of a client with all its credentials.
    pub(crate) fn name(self) -> [u8; 16] {
        self.whole
    }

    /// The sender of an attempt at a write: the owner of its key, with all credentials of the request. Those that the
    /// route does not declare as its identity count too, since they decide what the backend lets the sender read.
    pub(crate) fn of_attempt(self, presented: Presented<'_>, rules: &GuardRules) -> AttemptSender {
        let others = CREDENTIAL_FIELDS.iter().filter(|name| !rules.identity_headers.contains(name));
        let headers: Vec<HeaderName> = rules.identity_headers.iter().chain(others).cloned().collect();
        let others = CREDENTIAL_PARAMETERS.map(str::to_owned);
        let parameters: Vec<String> = rules.identity_query.iter().cloned().chain(others).collect();
        let (cookies, by_name) = (Cookies::of(rules), false);
        let declared = Declared { headers: &headers, parameters: &parameters, cookies, by_name };
        AttemptSender { owner: self.whole, credentials: identity(presented, &declared) }
    }

    /// The name of a client that has credentials beside cookies that the route does not name.
    pub(crate) fn declared(self) -> Option<PrincipalName> {
        (self.holder != ANONYMOUS).then_some(self.holder)
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

    /// True if the client signs each request anew.
    pub(crate) fn signs(&self) -> bool {
        self.whole != self.signer
    }
}

/// A hash of what identifies a client.
fn identity(presented: Presented<'_>, declared: &Declared<'_>) -> [u8; 16] {
    let Presented { headers, query, certificate } = presented;
    let by_name = declared.by_name;
    // Most clients have none, and a hasher takes 2 KiB.
    let mut hasher: Option<PartsHasher> = None;
    let mut add = |name: &[u8], value: &[u8]| {
        hasher.get_or_insert_default().add(name).add(value);
    };
    for name in declared.headers {
        let values = headers.get_all(name).iter().map(HeaderValue::as_bytes);
        match declared.cookies {
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
    if let Some(query) = query {
        let signer = by_name.then(|| url_signer(query)).flatten();
        for parameter in parameters(query, declared.parameters) {
            add(PARAMETER, signer.filter(|_| signs_url(parameter)).unwrap_or(parameter));
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
pub(crate) struct ReadGrants {
    /// With the last version that the principal was shown: a probe shows it none.
    pairs: DigestCache<(Principal, KeyDigest), (StoreTime, Option<Revision>)>,
    /// The resources that it has let any principal read, with their version then.
    shown: DigestCache<KeyDigest, (StoreTime, Revision)>,
}

impl ReadGrants {
    /// Starts without any grants.
    pub(crate) fn new() -> Self {
        Self { pairs: of_entries(PAIRS_MAX), shown: of_entries(PAIRS_MAX) }
    }

    /// Notes that the upstream has let the principal read the resource.
    pub(crate) fn was_let_read(
        &self,
        key: &ResourceKey,
        principal: Principal,
        (now, version): (StoreTime, Revision),
        identity_ttl: Duration,
    ) {
        let last_read = self.last_read(key, principal);
        self.grant((principal, key.digest()), last_read, (now, version), identity_ttl);
    }

    /// Notes that the upstream has let the principal read the resource, and that it was shown this version.
    pub(crate) fn was_shown_to(
        &self,
        key: &ResourceKey,
        principal: Principal,
        (now, version): (StoreTime, Revision),
        identity_ttl: Duration,
    ) {
        self.grant((principal, key.digest()), Some(version), (now, version), identity_ttl);
    }

    fn grant(
        &self,
        pair: (Principal, KeyDigest),
        read: Option<Revision>,
        (now, version): (StoreTime, Revision),
        identity_ttl: Duration,
    ) {
        let until = now.plus(identity_ttl);
        // Each insertion costs the cache some bookkeeping. One per quarter of `identity_ttl` is enough.
        let is_fresh = |known: StoreTime| known.until(until) < identity_ttl / 4;
        if !self.pairs.get(&pair).is_some_and(|(known, of)| of == read && is_fresh(known)) {
            self.pairs.insert(pair, (until, read));
        }
        if !self.shown.get(&pair.1).is_some_and(|(known, of)| of == version && is_fresh(known)) {
            self.shown.insert(pair.1, (until, version));
        }
    }

    /// Notes that the resource was removed: from now on, a backend that says so tells the truth.
    pub(crate) fn was_removed(&self, key: &ResourceKey) {
        self.shown.invalidate(&key.digest());
    }

    /// True if the upstream has let any principal read the resource, in any version.
    pub(crate) fn was_shown(&self, key: &ResourceKey, now: StoreTime) -> bool {
        self.shown.get(&key.digest()).is_some_and(|(until, _)| now < until)
    }

    /// True if the upstream has let any principal read this version of the resource.
    pub(crate) fn is_shown(&self, key: &ResourceKey, (now, version): (StoreTime, Revision)) -> bool {
        self.shown.get(&key.digest()).is_some_and(|(until, of)| now < until && of == version)
    }

    /// Forgets all grants.
    pub(crate) fn forget_all(&self) {
        self.pairs.invalidate_all();
        self.shown.invalidate_all();
    }

    /// True if the principal may know the state of the resource.
    pub(crate) fn may_know(&self, key: &ResourceKey, principal: Principal, now: StoreTime) -> bool {
        self.pairs.get(&(principal, key.digest())).is_some_and(|(until, _)| now < until)
    }

    /// Returns the last version of the resource that the principal was shown, if it is remembered.
    pub(crate) fn last_read(&self, key: &ResourceKey, principal: Principal) -> Option<Revision> {
        self.pairs.get(&(principal, key.digest())).and_then(|(_, read)| read)
    }
}

#[cfg(test)]
#[path = "principal_tests.rs"]
mod tests;
