//! The proofs of clients' identities that a document describes, and the keys of a configuration for them.

use serde_json::Value;

use super::document::ApiDocument;
use crate::core::http::credentials::CREDENTIAL_PARAMETERS;

/// The request fields that identify a client in any configuration.
pub(super) const KNOWN_FIELDS: [&str; 4] = ["Authorization", "Cookie", "X-Api-Key", "Api-Key"];

/// Schemes of HTTP whose credentials hold for one request.
const FOR_ONE_REQUEST: [&str; 4] = ["digest", "dpop", "hoba", "signature"];

/// The credentials of clients besides those that ifmatch knows without a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Credentials {
    /// Request fields.
    pub(super) fields: Vec<String>,
    /// Parameters of the query.
    pub(super) parameters: Vec<String>,
    /// Cookies.
    pub(super) cookies: Vec<String>,
    /// Schemes whose credentials hold for one request.
    pub(super) for_one_request: Vec<String>,
}

impl Credentials {
    /// Reads the security schemes of a document.
    pub(super) fn of(document: &ApiDocument) -> Self {
        let mut found = Self::default();
        let schemes = document.root().pointer("/components/securitySchemes").and_then(Value::as_object);
        for scheme in schemes.into_iter().flat_map(serde_json::Map::values) {
            if let Some(scheme) = document.resolved(scheme) {
                found.add(scheme);
            }
        }
        found
    }

    fn add(&mut self, scheme: &Value) {
        let text = |name: &str| scheme.get(name).and_then(Value::as_str).unwrap_or_default();
        let name = text("name");
        let is_token = http::HeaderName::from_bytes(name.as_bytes()).is_ok();
        match (text("type"), text("in")) {
            ("apiKey", "header") if is_token && !KNOWN_FIELDS.iter().any(|known| known.eq_ignore_ascii_case(name)) => {
                push(&mut self.fields, name);
            }
            ("apiKey", "query") if !name.is_empty() && !CREDENTIAL_PARAMETERS.contains(&name) => {
                push(&mut self.parameters, name);
            }
            ("apiKey", "cookie") if is_token => push(&mut self.cookies, name),
            ("http", _) if FOR_ONE_REQUEST.contains(&text("scheme").to_ascii_lowercase().as_str()) => {
                push(&mut self.for_one_request, text("scheme"));
            }
            _ => {}
        }
    }
}

fn push(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        names.push(name.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_credentials_that_need_a_key_are_told() {
        let text = "
openapi: 3.0.3
components:
  securitySchemes:
    a: {type: apiKey, in: header, name: X-Token}
    b: {type: apiKey, in: header, name: x-api-key}
    c: {type: apiKey, in: query, name: appid}
    d: {type: apiKey, in: query, name: api_key}
    e: {type: apiKey, in: cookie, name: session}
    f: {type: http, scheme: Digest}
    g: {type: http, scheme: bearer}
    h: {type: apiKey, in: header, name: 'no token'}
    i: {type: apiKey, in: header, name: x-token}
";
        let document = ApiDocument::parse("d", text).expect("a document");
        let expected = Credentials {
            fields: vec!["X-Token".to_owned()],
            parameters: vec!["appid".to_owned()],
            cookies: vec!["session".to_owned()],
            for_one_request: vec!["Digest".to_owned()],
        };
        assert_eq!(Credentials::of(&document), expected);
    }
}
