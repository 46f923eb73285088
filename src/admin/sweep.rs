//! A walk through the records of the store, a bounded part per request.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::answer::AdminProblem;
use crate::{
    core::{records::record::Snapshot, resource::ResourceKey},
    guard::Guard,
};

/// The number of records requested from the store at once.
const PAGE: usize = 500;
/// The number of records that one request looks at.
const LOOKS_MAX: usize = 20_000;

/// The place where a walk continues: the last key that was looked at, as an opaque word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor(ResourceKey);

impl Cursor {
    /// Reads a cursor from an earlier answer.
    pub(super) fn read(text: &str) -> Result<Self, AdminProblem> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok();
        let key = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).filter(|key| !key.is_empty());
        let key = key.ok_or_else(|| AdminProblem::malformed("cursor must come from an earlier answer"))?;
        Ok(Self(ResourceKey::from_text(&key)))
    }

    /// Returns the cursor as answers show it.
    pub(super) fn shown(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.as_str())
    }
}

/// The result of one part of a walk.
pub(super) struct Swept<T> {
    /// The values that were kept.
    pub(super) found: Vec<T>,
    /// The number of records that were looked at.
    pub(super) looked_at: usize,
    /// The cursor for the next part, unless all records were looked at.
    pub(super) cursor: Option<Cursor>,
}

/// Walks through the records of resources after a cursor and collects the values that `keep` returns. Stops at `limit`
/// values, or when it has looked at enough records. The values of one record stay together, so there can be more.
pub(super) async fn sweep<T, Kept: IntoIterator<Item = T>>(
    guards: &Guard,
    from: Option<Cursor>,
    limit: usize,
    keep: impl Fn(&ResourceKey, &Snapshot) -> Kept,
) -> Result<Swept<T>, AdminProblem> {
    let mut after = from.map(|Cursor(key)| key);
    let (mut found, mut looked_at) = (Vec::new(), 0);
    loop {
        let page = guards.page(after.as_ref(), PAGE).await?;
        let is_last = page.len() < PAGE;
        for (number, (key, snapshot)) in page.iter().enumerate() {
            looked_at += 1;
            if !key.is_of_no_resource() {
                found.extend(keep(key, snapshot));
            }
            if found.len() >= limit && !(is_last && number + 1 == page.len()) {
                return Ok(Swept { found, looked_at, cursor: Some(Cursor(key.clone())) });
            }
        }
        if is_last {
            return Ok(Swept { found, looked_at, cursor: None });
        }
        after = page.into_iter().last().map(|(key, _)| key);
        if looked_at >= LOOKS_MAX {
            return Ok(Swept { found, looked_at, cursor: after.map(Cursor) });
        }
        // A store in this process answers without waiting, so other tasks need a turn here.
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_as_it_is_shown() {
        let cursor = Cursor(ResourceKey::from_text("docs:/a?x=é&y"));
        assert_eq!(Cursor::read(&cursor.shown()).expect("it is one"), cursor);
        for text in ["", "*", "a b", "_w"] {
            assert!(Cursor::read(text).is_err(), "{text:?}");
        }
    }
}
