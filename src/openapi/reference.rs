//! References within a document (`$ref`), and JSON pointers as references spell them.

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// The longest chain of references that lead to references. A chain of people has one or two.
const CHAIN_MAX: usize = 16;

/// The reason why a reference leads to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BadReference<'d> {
    /// It leads to another document, or to a name that no pointer spells.
    External(&'d str),
    /// The document has nothing at that place.
    Missing(&'d str),
    /// It leads back to itself.
    Circular(&'d str),
}

/// Follows the references from a value to one that is none.
pub(super) fn resolve<'d>(root: &'d Value, mut value: &'d Value) -> Result<&'d Value, BadReference<'d>> {
    let mut last = "";
    for _ in 0..CHAIN_MAX {
        let Some(reference) = reference_of(value) else { return Ok(value) };
        value = target(root, reference)?;
        last = reference;
    }
    Err(BadReference::Circular(last))
}

/// The reference that a value is, if it is one.
pub(super) fn reference_of(value: &Value) -> Option<&str> {
    value.get("$ref")?.as_str()
}

/// The pointer of a reference within the document.
pub(super) fn pointer_of(reference: &str) -> Option<String> {
    let fragment = reference.strip_prefix('#').filter(|fragment| fragment.is_empty() || fragment.starts_with('/'))?;
    Some(percent_decode_str(fragment).decode_utf8().ok()?.into_owned())
}

fn target<'d>(root: &'d Value, reference: &'d str) -> Result<&'d Value, BadReference<'d>> {
    let pointer = pointer_of(reference).ok_or(BadReference::External(reference))?;
    root.pointer(&pointer).ok_or(BadReference::Missing(reference))
}

/// A pointer with one more token.
pub(super) fn joined(pointer: &str, token: &str) -> String {
    format!("{pointer}/{}", token.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_lead_through_others() {
        let root = json!({"a": {"$ref": "#/b/x~1%7Bid%7D"}, "b": {"x/{id}": {"$ref": "#/c"}}, "c": 1,
            "loop": {"$ref": "#/loop"}, "gone": {"$ref": "#/no"}, "file": {"$ref": "other.yaml#/a"},
            "anchor": {"$ref": "#name"}, "member": {"$ref": {"type": "string"}}});
        let resolved = |name: &str| resolve(&root, &root[name]);
        assert_eq!(resolved("a"), Ok(&json!(1)));
        assert_eq!(resolved("loop"), Err(BadReference::Circular("#/loop")));
        assert_eq!(resolved("gone"), Err(BadReference::Missing("#/no")));
        assert_eq!(resolved("file"), Err(BadReference::External("other.yaml#/a")));
        assert_eq!(resolved("anchor"), Err(BadReference::External("#name")));
        assert_eq!(resolved("member"), Ok(&root["member"]), "a member of a schema may have that name");
    }

    #[test]
    fn tokens_are_escaped() {
        assert_eq!(joined("/paths", "/a~b/{id}"), "/paths/~1a~0b~1{id}");
    }
}
