//! The name of the client with which its locks are shown, if its request has one.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderValue, header};

use crate::core::{lease::HolderLabel, policy::GuardRules};

/// The name of a client that has none.
const NOBODY: &str = "anonymous";

/// Returns the name of the client that sends these fields.
pub(super) fn owner_of(headers: &HeaderMap, rules: &GuardRules) -> String {
    let named = rules.owner_header.as_ref().and_then(|name| headers.get(name)).map(|value| value.as_bytes().to_vec());
    let name = named.or_else(|| user_of(headers.get(header::AUTHORIZATION)?));
    let label = name.and_then(|name| HolderLabel::parse(&name).ok());
    label.map_or_else(|| NOBODY.to_owned(), |label| label.as_str().to_owned())
}

/// Returns the user of Basic credentials (RFC 7617).
fn user_of(authorization: &HeaderValue) -> Option<Vec<u8>> {
    let (scheme, credentials) = authorization.to_str().ok()?.split_once(' ')?;
    let decoded = BASE64_STANDARD.decode(credentials.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    decoded.split(|octet| *octet == b':').next().map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;
    use crate::testing::guard;

    fn name(rules: &GuardRules, fields: &[(&'static str, &str)]) -> String {
        let field =
            |(name, value): &(&'static str, &str)| (HeaderName::from_static(name), value.parse().expect("a value"));
        owner_of(&fields.iter().map(field).collect(), rules)
    }

    /// Rule 11: nothing of a secret is shown.
    #[test]
    fn a_client_has_the_name_of_its_user() {
        let basic = |text: &str| format!("Basic {}", BASE64_STANDARD.encode(text));
        let rules = guard();
        for (authorization, expected) in [
            (basic("ann:secret"), "ann"),
            (basic("jörg:a:b").replace("Basic", "basic"), "jörg"),
            (basic(":secret"), "anonymous"),
            (basic("a\u{7}nn:secret"), "anonymous"),
            ("Bearer YW5uOnNlY3JldA==".to_owned(), "anonymous"),
            ("Basic !".to_owned(), "anonymous"),
        ] {
            assert_eq!(name(&rules, &[("authorization", &authorization)]), expected, "{authorization}");
        }
        assert_eq!(name(&rules, &[("x-api-key", "secret"), ("x-forwarded-user", "ann")]), "anonymous");
        let rules = GuardRules { owner_header: Some(HeaderName::from_static("x-forwarded-user")), ..rules };
        assert_eq!(name(&rules, &[("authorization", &basic("bob:b")), ("x-forwarded-user", "ann")]), "ann");
        assert_eq!(name(&rules, &[("authorization", &basic("bob:b"))]), "bob");
    }
}
