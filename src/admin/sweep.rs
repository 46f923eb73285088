//! A walk through the records of the store, a bounded part of it a request.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::answer::AdminProblem;
use crate::{
    core::{record::Snapshot, resource::ResourceKey},
    guard::Guard,
};

/// Records in one question to the store.
const PAGE: usize = 500;
/// Records that one request looks at.
const LOOKS_MAX: usize = 20_000;

/// Where a walk goes on: the last key that was looked at, as a word that says nothing to its reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor(ResourceKey);

impl Cursor {
    /// Reads what an earlier answer gave.
    pub(super) fn read(text: &str) -> Result<Self, AdminProblem> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok();
        let key = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).filter(|key| !key.is_empty());
        let key = key.ok_or_else(|| AdminProblem::malformed("cursor is one that an earlier answer gave"))?;
        Ok(Self(ResourceKey::from_text(&key)))
    }

    /// As answers give it.
    pub(super) fn shown(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.as_str())
    }
}

/// What a part of a walk came to.
pub(super) struct Swept<T> {
    /// What was kept.
    pub(super) found: Vec<T>,
    /// How many records were looked at.
    pub(super) looked_at: usize,
    /// Where to go on, unless all were looked at.
    pub(super) cursor: Option<Cursor>,
}

/// Goes through records from a cursor on, and keeps what `keep` makes of them, until it has `limit` or has looked at
/// enough.
pub(super) async fn sweep<T>(
    guards: &Guard,
    from: Option<Cursor>,
    limit: usize,
    keep: impl Fn(&ResourceKey, &Snapshot) -> Option<T>,
) -> Result<Swept<T>, AdminProblem> {
    let mut after = from.map(|Cursor(key)| key);
    let (mut found, mut looked_at) = (Vec::new(), 0);
    loop {
        let page = guards.page(after.as_ref(), PAGE).await?;
        let is_last = page.len() < PAGE;
        for (number, (key, snapshot)) in page.iter().enumerate() {
            looked_at += 1;
            found.extend(keep(key, snapshot));
            if found.len() == limit && !(is_last && number + 1 == page.len()) {
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
        // A store in this process answers at once: others want their turn.
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
