//! The tags that ifmatch issues itself (DESIGN, section 6).

use super::entity_tag::EntityTag;
use crate::core::{
    digits::{push_decimal, push_hexadecimal},
    records::record::Revision,
};

/// The number of hexadecimal digits of a hash in a content tag.
const CONTENT_DIGITS: usize = 32;

/// The number of hexadecimal digits of a variant's number.
const VARIANT_DIGITS: usize = 8;

/// The tag of a representation with these bytes: 128 bits of their hash, as 32 hexadecimal digits.
pub fn content_tag(hash: &blake3::Hash) -> Option<EntityTag> {
    EntityTag::strong(hash.to_hex().get(..CONTENT_DIGITS)?).ok()
}

/// The tag of a variant with these bytes: the content tag of the bytes, `-`, and the number of the variant.
pub fn variant_content_tag(hash: &blake3::Hash, variant: u32) -> Option<EntityTag> {
    let bytes = content_tag(hash)?;
    let mut text = Vec::with_capacity(CONTENT_DIGITS + 1 + VARIANT_DIGITS);
    text.extend_from_slice(bytes.opaque());
    text.push(b'-');
    push_hexadecimal(&mut text, &variant.to_be_bytes());
    EntityTag::strong(text).ok()
}

/// The part of a content tag that names bytes; `None` if the tag is not a content tag.
pub fn bytes_of_content_tag(opaque: &[u8]) -> Option<&[u8]> {
    let (bytes, variant) = opaque.split_at_checked(CONTENT_DIGITS)?;
    let is_number = |digits: &[u8]| digits.len() == VARIANT_DIGITS && digits.iter().all(u8::is_ascii_hexdigit);
    let is_whole = variant.is_empty() || variant.strip_prefix(b"-").is_some_and(is_number);
    (is_whole && bytes.iter().all(u8::is_ascii_hexdigit)).then_some(bytes)
}

/// The tag of a version: `<incarnation>-<version>-<variant>`, of which `If-Match` compares the first two parts.
pub fn version_tag(incarnation: u64, version: Revision, variant: u32) -> Option<EntityTag> {
    let mut text = version_prefix(incarnation, version);
    push_hexadecimal(&mut text, &variant.to_be_bytes());
    EntityTag::strong(text).ok()
}

/// True if a tag has the form of a version tag of this incarnation. A content tag never has it.
pub fn is_version_tag(incarnation: u64, tag: &EntityTag) -> bool {
    let mut prefix = Vec::with_capacity(17);
    push_hexadecimal(&mut prefix, &incarnation.to_be_bytes());
    prefix.push(b'-');
    tag.opaque().starts_with(&prefix)
}

/// True if a tag belongs to a variant of this version.
pub fn is_tag_of_version(incarnation: u64, version: Revision, tag: &EntityTag) -> bool {
    tag.opaque().starts_with(&version_prefix(incarnation, version))
}

/// The beginning of the tags of a version, up to the variant.
fn version_prefix(incarnation: u64, version: Revision) -> Vec<u8> {
    let mut text = Vec::with_capacity(16 + 1 + 20 + 1 + VARIANT_DIGITS);
    push_hexadecimal(&mut text, &incarnation.to_be_bytes());
    text.push(b'-');
    push_decimal(&mut text, version.0);
    text.push(b'-');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_tag_is_the_first_half_of_the_hash() {
        let hash = blake3::hash(b"hello");
        let tag = content_tag(&hash).unwrap();
        assert_eq!(tag.opaque(), &hash.to_hex().as_bytes()[..32]);
        assert!(!tag.is_weak());
    }

    #[test]
    fn the_content_tag_of_a_variant_names_its_bytes_too() {
        let hash = blake3::hash(b"hello");
        let (plain, variant) = (content_tag(&hash).unwrap(), variant_content_tag(&hash, 0xab).unwrap());
        assert_eq!(variant.opaque(), [plain.opaque(), b"-000000ab"].concat());
        assert_eq!(bytes_of_content_tag(variant.opaque()), Some(plain.opaque()));
        assert_eq!(bytes_of_content_tag(plain.opaque()), Some(plain.opaque()));
        for changed in [&b"-gzip"[..], b"-", b"-000000ab-gzip", b"-0000000g", b"000000ab-"] {
            assert_eq!(bytes_of_content_tag(&[plain.opaque(), changed].concat()), None);
        }
        let version = version_tag(0xab, Revision(12), 7).unwrap();
        assert_eq!(bytes_of_content_tag(version.opaque()), None);
        assert_eq!(bytes_of_content_tag(b""), None);
    }

    #[test]
    fn a_version_tag_has_three_parts() {
        let tag = version_tag(0xab, Revision(12), 7).unwrap();
        assert_eq!(tag.opaque(), b"00000000000000ab-12-00000007");
        assert!(is_version_tag(0xab, &tag));
        assert!(!is_version_tag(0xac, &tag), "another store's version");
        assert!(!is_version_tag(0xab, &content_tag(&blake3::hash(b"")).unwrap()));
        assert!(!tag.is_weak());
    }

    #[test]
    fn a_version_has_a_tag_for_each_variant() {
        let is_of_version = |tag: Option<EntityTag>| is_tag_of_version(0xab, Revision(12), &tag.unwrap());
        assert!(is_of_version(version_tag(0xab, Revision(12), 7)));
        assert!(is_of_version(version_tag(0xab, Revision(12), 8)));
        assert!(!is_of_version(version_tag(0xab, Revision(1), 7)));
        assert!(!is_of_version(version_tag(0xab, Revision(123), 7)));
        assert!(!is_of_version(version_tag(0xac, Revision(12), 7)));
        assert!(!is_of_version(content_tag(&blake3::hash(b""))));
    }
}
