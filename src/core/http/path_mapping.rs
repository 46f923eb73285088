//! Paths that begin differently at the upstream (`strip_prefix`, `add_prefix`).
//!
//! # Design
//!
//! *Which path is in the key of a resource?* The upstream's. Two routes with different prefixes may lead to one
//! resource, and one resource has one key.
//!
//! *Why must the beginning be spelled as configured?* The target is forwarded as it was received, so the mapping
//! removes octets. In another spelling the same octets would mean something else. [`PathMapping::agrees`] compares the
//! path that the upstream would read with the one that was meant, dot segments included.

use super::request_target::{KeptInNames, NormalPath, normalize, split_authority, split_query};

/// How paths are changed on their way to an upstream. Both prefixes are empty or in normal form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathMapping {
    strip: String,
    add: String,
    ignores_case: bool,
}

impl PathMapping {
    /// Makes a mapping that removes one prefix and adds the other. The root stands for no prefix.
    pub fn new(strip: &NormalPath, add: &NormalPath) -> Self {
        let text = |prefix: &NormalPath| prefix.as_str().trim_end_matches('/').to_owned();
        Self { strip: text(strip), add: text(add), ignores_case: false }
    }

    /// The mapping of a backend that ignores letter case: the prefix that is removed may be spelled in any.
    #[must_use]
    pub fn ignoring_case(self) -> Self {
        Self { ignores_case: true, ..self }
    }

    /// True if paths stay unchanged.
    pub fn is_identity(&self) -> bool {
        self.strip.is_empty() && self.add.is_empty()
    }

    /// The prefix that is removed.
    pub fn strip(&self) -> &str {
        &self.strip
    }

    /// The prefix that is added.
    pub fn add(&self) -> &str {
        &self.add
    }

    /// A target (path, and query if there is one) as the upstream receives it; `None` if it does not begin with the
    /// prefix to remove.
    pub fn to_upstream(&self, target: &[u8]) -> Option<Vec<u8>> {
        self.replace(target, &self.strip, &self.add)
    }

    /// A path in normal form as the upstream reads it.
    pub fn upstream_path(&self, path: &NormalPath) -> Option<NormalPath> {
        if self.is_identity() {
            return Some(path.clone());
        }
        normalize(&self.to_upstream(path.as_str().as_bytes())?, KeptInNames::ALL).ok()
    }

    /// True if a path as received and its normal form lead the upstream to the same path.
    pub fn agrees(&self, received: &[u8], normal: &NormalPath) -> bool {
        self.is_identity()
            || self.to_upstream(received).is_some_and(|mapped| {
                normalize(&mapped, KeptInNames::ALL).ok().as_ref() == self.upstream_path(normal).as_ref()
            })
    }

    /// A target of the upstream as the client sees it; `None` if no target of a client leads there.
    pub fn to_client(&self, target: &[u8]) -> Option<Vec<u8>> {
        self.replace(target, &self.add, &self.strip)
    }

    /// A reference in a response (RFC 3986 section 4.1) as the client should follow it; `None` if it stays unchanged.
    /// The upstream names itself by the client's host, or by a name for which `is_own` holds and which the client
    /// never sees.
    pub fn reference_to_client(&self, reference: &str, host: &str, is_own: impl Fn(&str) -> bool) -> Option<String> {
        let (beginning, authority, rest) = split_authority(reference)?;
        let beginning = match authority {
            Some(authority) if authority.eq_ignore_ascii_case(host) => beginning,
            Some(authority) if is_own(authority) => "",
            Some(_) => return None,
            None => "",
        };
        if authority.is_none() && !rest.starts_with('/') {
            // Relative to the target, whose end stays the same.
            return None;
        }
        let slash = if rest.starts_with('/') { "" } else { "/" };
        let mapped = String::from_utf8(self.to_client(format!("{slash}{rest}").as_bytes())?).ok()?;
        let mapped = format!("{beginning}{mapped}");
        (mapped != reference).then_some(mapped)
    }

    /// A target with its beginning replaced.
    fn replace(&self, target: &[u8], old: &str, new: &str) -> Option<Vec<u8>> {
        let (beginning, rest) = target.split_at_checked(old.len())?;
        let is_old = beginning == old.as_bytes() || self.ignores_case && beginning.eq_ignore_ascii_case(old.as_bytes());
        let (path, _) = split_query(rest);
        if !is_old || !path.is_empty() && !path.starts_with(b"/") && !path.starts_with(b"#") {
            return None;
        }
        let slash = if new.is_empty() && !path.starts_with(b"/") { "/" } else { "" };
        Some([new.as_bytes(), slash.as_bytes(), rest].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(path: &str) -> NormalPath {
        normalize(path.as_bytes(), KeptInNames::ALL).unwrap()
    }

    fn mapping(strip: &str, add: &str) -> PathMapping {
        PathMapping::new(&normal(strip), &normal(add))
    }

    fn there(strip: &str, add: &str, target: &str) -> Option<String> {
        mapping(strip, add).to_upstream(target.as_bytes()).map(|mapped| String::from_utf8(mapped).unwrap())
    }

    #[test]
    fn a_target_gets_another_beginning() {
        for (strip, add, target, expected) in [
            ("/api", "/", "/api/docs/1?a=/api", Some("/docs/1?a=/api")),
            ("/api", "/", "/api", Some("/")),
            ("/api", "/", "/api?a", Some("/?a")),
            ("/api", "/", "/api/", Some("/")),
            ("/api", "/v1", "/api/docs", Some("/v1/docs")),
            ("/api", "/v1", "/api", Some("/v1")),
            ("/", "/v1", "/docs", Some("/v1/docs")),
            ("/", "/v1", "/", Some("/v1/")),
            ("/api", "/", "/apis", None),
            ("/api", "/", "/%61pi/docs", None),
            ("/", "/", "/docs", Some("/docs")),
        ] {
            assert_eq!(there(strip, add, target).as_deref(), expected, "{strip} {add} {target}");
        }
    }

    #[test]
    fn a_prefix_in_another_case_is_one_where_case_is_ignored() {
        let api = mapping("/api", "/v1");
        assert_eq!(api.to_upstream(b"/API/Docs"), None);
        let api = api.ignoring_case();
        assert_eq!(api.to_upstream(b"/API/Docs?X=/API").as_deref(), Some(&b"/v1/Docs?X=/API"[..]));
        assert!(api.agrees(b"/API/Docs", &normal("/API/Docs")));
        assert_eq!(api.to_upstream(b"/APIs"), None);
    }

    #[test]
    fn a_target_comes_back_as_it_went() {
        for (strip, add) in [("/api", "/"), ("/", "/v1"), ("/api", "/v1"), ("/a/b", "/c/d")] {
            let client = format!("{}/docs/1?x", mapping(strip, add).strip());
            let upstream = mapping(strip, add).to_upstream(client.as_bytes()).unwrap();
            assert_eq!(mapping(strip, add).to_client(&upstream), Some(client.into_bytes()));
        }
    }

    /// A path that leaves the prefix would be another resource than the one whose claim was taken.
    #[test]
    fn a_path_that_the_upstream_reads_otherwise_does_not_agree() {
        let api = mapping("/api", "/v1");
        assert!(api.agrees(b"/api/docs/1", &normal("/api/docs/1")));
        assert!(api.agrees(b"/api/docs/../docs/%31", &normal("/api/docs/1")));
        for received in ["/api/../api/docs/1", "/x/../api/docs/1", "/%61pi/docs/1", "/api/../../api/docs/1"] {
            assert!(!api.agrees(received.as_bytes(), &normal("/api/docs/1")), "{received}");
        }
        assert!(!mapping("/", "/v1").agrees(b"/a/../../docs", &normal("/docs")));
    }

    /// RFC 9110 sections 10.2.2 and 8.7.
    #[test]
    fn references_of_the_upstream_lead_its_client_back() {
        let api = mapping("/api", "/v1");
        let back = |reference: &str| api.reference_to_client(reference, "docs.test", |host| host == "10.0.0.1:80");
        for (reference, expected) in [
            ("/v1/docs/2", Some("/api/docs/2")),
            ("/v1", Some("/api")),
            ("/v1?page=2#a", Some("/api?page=2#a")),
            ("https://docs.test/v1/docs/2", Some("https://docs.test/api/docs/2")),
            ("http://10.0.0.1:80/v1/docs/2", Some("/api/docs/2")),
            ("//10.0.0.1:80/v1/docs/2", Some("/api/docs/2")),
            ("2", None),
            ("?page=2", None),
            ("/login", None),
            ("/v12", None),
            ("http://other.test/v1/docs/2", None),
            ("mailto:a@docs.test", None),
        ] {
            assert_eq!(back(reference).as_deref(), expected, "{reference}");
        }
    }

    #[test]
    fn an_own_name_of_the_upstream_is_not_told_even_where_paths_stay() {
        let same = PathMapping::default();
        let back = same.reference_to_client("http://10.0.0.1/docs/2", "docs.test", |host| host == "10.0.0.1");
        assert_eq!(back.as_deref(), Some("/docs/2"));
    }
}
