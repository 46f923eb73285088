//! Pages of locks, in the order of the hashes of their resources. That order stays the same while locks come and go, so a
//! lock that is held meanwhile is on one page.

use crate::core::{
    digits::hexadecimal_text,
    resource::{KeyDigest, ResourceKey},
};

/// The most locks on a page. Each of them costs a read of the store.
const LOCKS_MAX: usize = 100;

/// The page that a client wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageWanted {
    after: Option<KeyDigest>,
    limit: Option<usize>,
}

/// A page of the resources that may be locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockPage {
    /// The resources.
    pub keys: Vec<ResourceKey>,
    /// The place where the next page begins, if there is one.
    pub next_cursor: Option<String>,
}

impl PageWanted {
    /// Reads the page that a client wants. `None` if the cursor is none that it was given.
    pub fn of(cursor: Option<&str>, limit: Option<usize>) -> Option<Self> {
        let after = match cursor.filter(|cursor| !cursor.is_empty()) {
            Some(cursor) if cursor.len() == 32 => Some(u128::from_str_radix(cursor, 16).ok()?.to_be_bytes()),
            Some(_) => return None,
            None => None,
        };
        Some(Self { after, limit })
    }
}

impl LockPage {
    /// Returns a page of these resources, each of which may occur several times.
    pub fn of(keys: impl Iterator<Item = ResourceKey>, wanted: PageWanted) -> Self {
        let is_behind = |key: &ResourceKey| wanted.after.is_none_or(|after| key.digest() > after);
        let mut keys: Vec<ResourceKey> = keys.filter(is_behind).collect();
        keys.sort_unstable_by_key(ResourceKey::digest);
        keys.dedup();
        let limit = wanted.limit.unwrap_or(LOCKS_MAX).clamp(1, LOCKS_MAX);
        let has_more = keys.len() > limit;
        keys.truncate(limit);
        let last = keys.last().filter(|_| has_more);
        let next_cursor = last.map(|last| hexadecimal_text(&last.digest()));
        Self { keys, next_cursor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: usize) -> Vec<ResourceKey> {
        (0..count).map(|number| ResourceKey::from_text(&format!("u:/game/locks/{number}"))).collect()
    }

    #[test]
    fn pages_have_each_resource_once() {
        let all = keys(250);
        for (limit, pages) in [(None, 3), (Some(0), 250), (Some(1_000), 3), (Some(25), 10), (Some(60), 5)] {
            let (mut found, mut cursor, mut count) = (Vec::new(), None::<String>, 0);
            loop {
                let wanted = PageWanted::of(cursor.as_deref(), limit).expect("a cursor");
                let page = LockPage::of(all.iter().chain(&all[..9]).cloned(), wanted);
                found.extend(page.keys);
                count += 1;
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            let mut expected = all.clone();
            expected.sort_unstable_by_key(ResourceKey::digest);
            assert_eq!((count, found), (pages, expected), "{limit:?}");
        }
        assert_eq!(LockPage::of([].into_iter(), PageWanted::default()), LockPage { keys: vec![], next_cursor: None });
    }

    /// A lock that exists during both pages is shown, no matter which others come and go between them.
    #[test]
    fn a_cursor_outlives_its_lock() {
        let (all, wanted) = (keys(10), PageWanted::of(None, Some(5)).expect("no cursor"));
        let first = LockPage::of(all.iter().cloned(), wanted);
        let left = all.iter().filter(|key| !first.keys.contains(key)).cloned().chain(keys(40).split_off(30));
        let second = LockPage::of(left, PageWanted::of(first.next_cursor.as_deref(), None).expect("a cursor"));
        assert!(all.iter().all(|key| first.keys.contains(key) || second.keys.contains(key)));
    }

    #[test]
    fn a_cursor_is_one_of_ours() {
        for cursor in ["1", "/game/a", &"g".repeat(32), &"0".repeat(33)] {
            assert_eq!(PageWanted::of(Some(cursor), None), None, "{cursor}");
        }
        assert_eq!(PageWanted::of(Some(""), None), PageWanted::of(None, None));
    }
}
