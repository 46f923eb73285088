//! The part of a record that tells whether the backend keeps to `unique_tags = true`.
//!
//! # Design
//!
//! The statement says that the backend never gives one tag to two states, so all its tags go out as they are. It is
//! believed until it is seen to be untrue. The record lists the tags of the last states that writes have replaced. If the
//! backend shows one of them again, the statement is untrue. That tag then has the suffix of the version, in every process
//! that reads the record.
//!
//! *Why does a write that is not known to be applied leave the list as it was?* It may have changed nothing, and then the
//! backend rightly shows the same tag.

use super::{
    bare_tags::{Before, EARLIER_MAX, ShortName, Shown},
    entity_tag::EntityTag,
};

/// The tags of the last states of one target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecentTags {
    /// The target that was written.
    pub target: ShortName,
    /// The tag of the state after the last write, if it was learned and none of the earlier ones.
    pub current: Option<ShortName>,
    /// The tags of the states before, oldest first.
    pub earlier: Vec<ShortName>,
}

impl RecentTags {
    /// Returns the tags after an applied write that has shown these.
    #[must_use]
    pub fn followed_by(recent: Option<Box<Self>>, shown: Shown) -> Box<Self> {
        let Shown { target, before, after, .. } = shown;
        let recent = recent.filter(|recent| recent.target == target);
        let mut recent = recent.unwrap_or_else(|| Box::new(Self { target, current: None, earlier: Vec::new() }));
        if let Before::Tag(tag) = before {
            recent.replaced(tag);
        }
        if let Some(tag) = recent.current.take() {
            recent.replaced(tag);
        }
        recent.current = after.filter(|tag| !recent.earlier.contains(tag));
        recent
    }

    fn replaced(&mut self, tag: ShortName) {
        if self.earlier.contains(&tag) {
            return;
        }
        if self.earlier.len() >= EARLIER_MAX {
            self.earlier.remove(0);
        }
        self.earlier.push(tag);
    }
}

/// True if a tag has the form of a hash of the content, as S3 makes it: 32 hexadecimal digits, and for an upload in parts
/// their number.
pub fn is_hash_of_content(tag: &EntityTag) -> bool {
    let (hash, parts) = tag.opaque().split_at_checked(32).unwrap_or_default();
    let number = parts.strip_prefix(b"-");
    let is_whole =
        parts.is_empty() || number.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit));
    hash.len() == 32 && hash.iter().all(u8::is_ascii_hexdigit) && is_whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tags::followed_tags::Followed;

    fn after(recent: Option<RecentTags>, target: u64, before: Option<u64>, after: Option<u64>) -> RecentTags {
        let before = before.map_or(Before::Unknown, |tag| Before::Tag(ShortName(tag)));
        let shown = Shown { target: ShortName(target), before, after: after.map(ShortName), purpose: Followed::Unique };
        *RecentTags::followed_by(recent.map(Box::new), shown)
    }

    fn of(recent: &RecentTags) -> (Option<u64>, Vec<u64>) {
        (recent.current.map(|tag| tag.0), recent.earlier.iter().map(|tag| tag.0).collect())
    }

    /// Rule 2: a tag that comes back is in the list, no matter how it was learned.
    #[test]
    fn the_tags_of_replaced_states_are_listed() {
        let first = after(None, 1, Some(7), Some(8));
        assert_eq!(of(&first), (Some(8), vec![7]));
        let second = after(Some(first.clone()), 1, Some(8), Some(7));
        assert_eq!(of(&second), (None, vec![7, 8]), "the first tag came back");
        let unlearned = after(Some(first.clone()), 1, Some(8), None);
        assert_eq!(of(&unlearned), (None, vec![7, 8]));
        let unseen = after(Some(first.clone()), 1, None, Some(9));
        assert_eq!(of(&unseen), (Some(9), vec![7, 8]));
        let beside = after(Some(first), 2, Some(3), None);
        assert_eq!(of(&beside), (None, vec![3]), "another target");
    }

    #[test]
    fn a_hash_of_content_is_told_by_its_form() {
        let hash = "d41d8cd98f00b204e9800998ecf8427e";
        for (text, is_hash) in [
            (hash.to_owned(), true),
            (format!("{hash}-12"), true),
            (format!("{hash}-"), false),
            (format!("{hash}0"), false),
            (hash[1..].to_owned(), false),
            (format!("x{}", &hash[1..]), false),
            ("65a-5".to_owned(), false),
        ] {
            assert_eq!(is_hash_of_content(&EntityTag::strong(text.as_str()).unwrap()), is_hash, "{text}");
        }
    }

    #[test]
    fn the_list_forgets_the_oldest() {
        let mut recent = None;
        for tag in 0..=EARLIER_MAX as u64 {
            recent = Some(after(recent, 1, Some(tag), None));
        }
        let (_, earlier) = of(&recent.unwrap());
        assert_eq!((earlier.len(), earlier[0]), (EARLIER_MAX, 1));
    }
}
