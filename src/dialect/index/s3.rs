//! The list of a bucket of Amazon S3 (`ListObjectsV2`), by its path: `/BUCKET/PREFIX/`.

use quick_xml::events::Event;

use super::{MalformedIndex, from_form, in_query};
use crate::{
    core::members::index_page::{PAGE_NAMES_MAX, PageStart},
    dialect::markup::{NESTING_MAX, content_of, next, reader, text_of},
};

/// Returns the target of a page of the list of a folder.
pub(super) fn target(folder: &str, start: Option<&PageStart>) -> Vec<u8> {
    let (bucket, prefix) = split(folder);
    let prefix = in_query(&percent_encoding::percent_decode_str(prefix).decode_utf8_lossy());
    let mut target =
        format!("/{bucket}?list-type=2&delimiter=%2F&encoding-type=url&max-keys={PAGE_NAMES_MAX}&prefix={prefix}");
    if let Some(PageStart::Continuation(token)) = start {
        target.extend(["&continuation-token=", &in_query(token)]);
    }
    target.into()
}

/// Reads the names of the objects in a folder, and the token of the next page.
pub(super) fn read(
    document: &[u8],
    folder: &str,
    add: &mut dyn FnMut(String),
) -> Result<Option<String>, MalformedIndex> {
    let (_, prefix) = split(folder);
    let prefix = percent_encoding::percent_decode_str(prefix).decode_utf8_lossy().into_owned();
    let list = BucketList::of(document)?;
    for key in list.keys {
        let key = if list.is_encoded { from_form(&key).ok_or(MalformedIndex)? } else { key };
        if let Some(name) = key.strip_prefix(&prefix) {
            add(name.to_owned());
        }
    }
    match (list.is_truncated, list.token) {
        (false, _) => Ok(None),
        (true, Some(token)) => Ok(Some(token)),
        // The rest could never be read.
        (true, None) => Err(MalformedIndex),
    }
}

/// Splits the path of a folder into its bucket, and the beginning of the keys in it.
fn split(folder: &str) -> (&str, &str) {
    folder.trim_start_matches('/').split_once('/').unwrap_or_default()
}

/// The content of a document.
#[derive(Default)]
struct BucketList {
    is_list: bool,
    keys: Vec<String>,
    is_truncated: bool,
    token: Option<String>,
    is_encoded: bool,
}

impl BucketList {
    fn of(document: &[u8]) -> Result<Self, MalformedIndex> {
        let text = text_of(document).map_err(|_unreadable| MalformedIndex)?;
        let (mut reader, mut list, mut path) = (reader(text), Self::default(), Vec::<String>::new());
        let mut content = String::new();
        loop {
            let event = next(&mut reader).map_err(|_unreadable| MalformedIndex)?;
            match &event {
                Event::Start(start) => {
                    path.push(start.local_name().into_inner().to_owned());
                    content.clear();
                    if path.len() > NESTING_MAX {
                        return Err(MalformedIndex);
                    }
                }
                Event::End(_) => {
                    list.note(&path, &content);
                    path.pop();
                    content.clear();
                }
                Event::Eof if path.is_empty() && list.is_list => return Ok(list),
                Event::Eof => return Err(MalformedIndex),
                Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => {
                    content.push_str(&content_of(&event).ok_or(MalformedIndex)?);
                }
                _ => {}
            }
        }
    }

    /// Notes the content of an element.
    fn note(&mut self, path: &[String], content: &str) {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        match path[..] {
            ["ListBucketResult"] => self.is_list = true,
            ["ListBucketResult", "Contents", "Key"] => self.keys.push(content.to_owned()),
            ["ListBucketResult", "IsTruncated"] => self.is_truncated = content.trim() == "true",
            ["ListBucketResult", "NextContinuationToken"] => self.token = Some(content.to_owned()),
            ["ListBucketResult", "EncodingType"] => self.is_encoded = content.trim() == "url",
            _ => {}
        }
    }
}
