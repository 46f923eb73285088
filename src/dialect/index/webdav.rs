//! The multistatus that answers PROPFIND (RFC 4918 section 9.1).

use super::MalformedIndex;
use crate::{
    core::{
        http::{readings::collection::is_collection, request_target::split_authority},
        route::MembersFolder,
    },
    dialect::webdav::{Cutter, ListPiece, MalformedMultistatus, MultistatusResponse},
};

/// The name of the root of the document.
const LIST: &[u8] = b"multistatus";

impl From<MalformedMultistatus> for MalformedIndex {
    fn from(_malformed: MalformedMultistatus) -> Self {
        Self
    }
}

/// Reads the names of the resources in a folder that are no collections.
pub(super) fn read(document: &[u8], folder: &MembersFolder, add: &mut dyn FnMut(String)) -> Result<(), MalformedIndex> {
    let mut cutter = Cutter::default();
    let pieces = cutter.push(document)?;
    for piece in &pieces {
        let ListPiece::Element(element) = piece else { continue };
        let Some(response) = MultistatusResponse::read(cutter.root(), element)? else { continue };
        // The members of a folder have its host, under any name that the server has.
        let Some((_, _, path)) = split_authority(response.href()) else { continue };
        let is_folder = path.ends_with('/') || is_collection(element) == Some(true);
        if let Some(file) = folder.file_at(path.as_bytes()).filter(|_| !is_folder) {
            add(file);
        }
    }
    let is_list = cutter.root().windows(LIST.len()).any(|octets| octets == LIST);
    cutter.finish()?;
    if is_list { Ok(()) } else { Err(MalformedIndex) }
}
