//! The keys that a template may have made: the way back from a record to its route.

use super::{
    super::{
        http::request_target::{KeptInNames, normalize},
        route::{HostPattern, PathPattern, RouteTable},
    },
    KeyTemplate, ResourceKey,
    template::TemplatePart,
    values::identity_prefix,
};

impl KeyTemplate {
    /// True if a request to the upstream with this identity, on a path of this pattern, may have this key. If the key
    /// does not tell, it may.
    pub fn may_have_made(&self, key: &ResourceKey, identity: &str, path: &PathPattern) -> bool {
        let Some(values) = key.as_str().strip_prefix(&identity_prefix(identity)) else { return false };
        if self.parts == [TemplatePart::Path] { matches(path, values) } else { fits(&self.parts, values) }
    }
}

/// True if a path in normal form matches a pattern.
fn matches(pattern: &PathPattern, path: &str) -> bool {
    let table = RouteTable::new(vec![(HostPattern::Any, pattern.clone())]);
    normalize(path.as_bytes(), KeptInNames::ALL).is_ok_and(|path| table.find("any", &path).is_some())
}

/// True if the literals of a template occur in a text in their order. No value holds the beginning of the literal that
/// follows it, so the first place where a literal is found is the right one.
fn fits(parts: &[TemplatePart], text: &str) -> bool {
    let (mut rest, mut is_after_value) = (text, false);
    for part in parts {
        let TemplatePart::Literal(literal) = part else {
            is_after_value = true;
            continue;
        };
        let following = if is_after_value {
            rest.split_once(literal.as_str()).map(|(_, following)| following)
        } else {
            rest.strip_prefix(literal.as_str())
        };
        let Some(following) = following else { return false };
        (rest, is_after_value) = (following, false);
    }
    is_after_value
        || rest.is_empty()
        || matches!(parts.last(), Some(TemplatePart::Literal(last)) if text.ends_with(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_have_made(template: &str, path: &str, key: &str) -> bool {
        let path = PathPattern::parse(path).expect("a pattern");
        let template = KeyTemplate::parse(template, &["a", "b"]).expect("a template");
        template.may_have_made(&ResourceKey::from_text(key), "docs", &path)
    }

    #[test]
    fn a_key_belongs_to_the_identity_that_it_begins_with() {
        assert!(may_have_made("{path}", "/{*rest}", "docs:/a"));
        assert!(!may_have_made("{path}", "/{*rest}", "other:/a"));
        assert!(!may_have_made("{path}", "/{*rest}", "docs"));
    }

    #[test]
    fn the_key_of_a_write_belongs_to_no_route() {
        let write = ResourceKey::of_keyed_write([1; 32]);
        assert!(write.is_of_keyed_write() && !ResourceKey::from_text("write:/a").is_of_keyed_write());
        let path = PathPattern::parse("/{*rest}").expect("a pattern");
        for template in ["{path}", "{rest}"] {
            let template = KeyTemplate::parse(template, &["rest"]).expect("a template");
            for identity in ["write", "docs"] {
                assert!(!template.may_have_made(&write, identity, &path), "{identity}");
            }
        }
    }

    #[test]
    fn a_key_that_is_a_path_belongs_to_the_patterns_that_match_it() {
        assert!(may_have_made("{path}", "/a/{a}", "docs:/a/1"));
        assert!(!may_have_made("{path}", "/a/{a}", "docs:/b/1"));
        assert!(!may_have_made("{path}", "/a/{a}", "docs:1#2"));
    }

    #[test]
    fn a_key_of_values_has_the_text_between_them() {
        assert!(may_have_made("{a}#{b}", "/{a}/{b}", "docs:1#2"));
        assert!(!may_have_made("{a}#{b}", "/{a}/{b}", "docs:/1/2"));
        assert!(may_have_made("job-{a}", "/{a}/{b}", "docs:job-1"));
        assert!(!may_have_made("job-{a}", "/{a}/{b}", "docs:task-1"));
        assert!(may_have_made("{a}.json", "/{a}/{b}", "docs:x.json.json"));
        assert!(!may_have_made("{a}.json", "/{a}/{b}", "docs:x.text"));
        assert!(!may_have_made("one", "/{a}/{b}", "docs:one-more"));
    }
}
