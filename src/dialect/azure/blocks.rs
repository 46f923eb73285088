//! Uploads in blocks: ids, lists, and the document that shows blocks.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderValue, StatusCode};
use serde::Deserialize;

use super::{
    CONTENT_CRC64,
    query::Query,
    refusals::{bad_query, invalid},
};
use crate::{
    core::{
        http::request_target::split_query,
        objects::blocks::{BlockFault, BlockId},
        refusal::{Code, Refusal},
        tags::checksum::Checksum,
    },
    dialect::{Response, ShownDocument, objects::BlockGrammar, xml},
};

/// The longest id of a block, in bytes.
const ID_BYTES_MAX: usize = 64;
/// The room for the elements around the blocks of a list.
const LIST_BYTES: usize = 1024;
/// The room for one block of a list: the longest id in Base64, its element, and white space.
const LISTED_BYTES: usize = 200;

/// Blocks of Azure Blob Storage.
#[derive(Debug)]
pub(super) struct AzureBlocks;

/// A list of blocks as clients write it. The name of an element tells where to look for its block.
#[derive(Deserialize)]
enum ListDocument {
    BlockList(ListedBlocks),
}

#[derive(Deserialize)]
struct ListedBlocks {
    #[serde(rename = "$value", default)]
    blocks: Vec<ListedBlock>,
}

#[derive(Deserialize)]
enum ListedBlock {
    Latest(String),
    Uncommitted(String),
    Committed(#[expect(dead_code, reason = "the element is known, and refused whatever it names")] String),
}

/// The kinds of blocks that a client wants to see.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListedKind {
    Committed,
    Uncommitted,
    All,
}

impl BlockGrammar for AzureBlocks {
    fn list(&self, content: &[u8]) -> Result<Vec<BlockId>, Refusal> {
        let document = str::from_utf8(content).ok().and_then(|text| quick_xml::de::from_str(text).ok());
        let Some(ListDocument::BlockList(list)) = document else {
            return Err(invalid("InvalidXmlDocument", "The body is no list of blocks: send <BlockList> in UTF-8."));
        };
        let id = |block| match block {
            ListedBlock::Latest(id) | ListedBlock::Uncommitted(id) => {
                block_id(id.trim().as_bytes()).ok_or_else(|| self.refused(BlockFault::Unknown))
            }
            ListedBlock::Committed(_) => Err(invalid(
                "InvalidBlockList",
                "Blocks of the current blob cannot be kept here, because the backend stores no blocks: upload them \
                 again, and list them as <Latest>.",
            )),
        };
        list.blocks.into_iter().map(id).collect()
    }

    fn max_list_bytes(&self, max_blocks: usize) -> usize {
        LIST_BYTES + max_blocks.saturating_mul(LISTED_BYTES)
    }

    fn kept(&self, crc64: Checksum) -> Response {
        // Base64 is always a valid value.
        let value = HeaderValue::try_from(crc64.to_base64()).ok();
        let fields = value.map(|value| (CONTENT_CRC64, value)).into_iter().collect();
        Response { status: StatusCode::CREATED, fields, body: None }
    }

    fn shown(&self, target: &[u8], blocks: &[(BlockId, u64)]) -> ShownDocument {
        let query = Query::read(split_query(target).1.unwrap_or_default()).unwrap_or_default();
        let kind = listed_kind(&query).unwrap_or(ListedKind::Committed);
        let mut body = xml::Writer::begin("BlockList");
        if kind != ListedKind::Uncommitted {
            // The backend stores no blocks. Azure shows the same of a blob that was uploaded in one request.
            body.element("CommittedBlocks", |_| {});
        }
        if kind != ListedKind::Committed {
            body.element("UncommittedBlocks", |body| {
                for (id, bytes) in blocks {
                    body.element("Block", |body| {
                        body.text("Name", &BASE64_STANDARD.encode(&id.0));
                        body.text("Size", &bytes.to_string());
                    });
                }
            });
        }
        ShownDocument { content_type: xml::CONTENT_TYPE, body: body.end("BlockList") }
    }

    fn refused(&self, fault: BlockFault) -> Refusal {
        match fault {
            BlockFault::IdLength => invalid("InvalidBlobOrBlock", "The ids of all blocks of a blob have one length."),
            BlockFault::TooMany => {
                let detail = "The blob has as many uncommitted blocks as this proxy keeps (max_staged_blocks): send \
                              larger blocks.";
                Refusal::new(Code::Overloaded, detail).called(409, "BlockCountExceedsLimit")
            }
            BlockFault::ListTooLong => invalid(
                "BlockListTooLong",
                "The list has more blocks than this proxy keeps (max_staged_blocks): send larger blocks.",
            ),
            BlockFault::TooLarge => Refusal::new(
                Code::BodyTooLarge,
                "The blocks are larger together than a blob can be here (max_body_size of this proxy).",
            ),
            BlockFault::Unknown => invalid(
                "InvalidBlockList",
                "The list names a block that is not among the uncommitted blocks of this client: upload it again. This \
                 proxy drops them after staged_block_ttl, when it restarts, and when the blob is written.",
            ),
        }
    }
}

/// Reads the id of a block, which is written in Base64.
fn block_id(text: &[u8]) -> Option<BlockId> {
    let id = BASE64_STANDARD.decode(text).ok()?;
    (1..=ID_BYTES_MAX).contains(&id.len()).then_some(BlockId(id))
}

/// Reads the id in a query.
///
/// # Errors
///
/// The query has no id, or it is not written in Base64.
pub(super) fn id(query: &Query) -> Result<BlockId, Refusal> {
    let Some(text) = query.value("blockid") else {
        let detail = "The request needs the query parameter blockid.";
        return Err(invalid("MissingRequiredQueryParameter", detail));
    };
    block_id(text.as_bytes()).ok_or_else(|| {
        let detail = "The id of a block has 1 to 64 bytes, written in Base64.";
        invalid("InvalidBlockId", detail)
    })
}

/// Checks the kind of blocks that a query asks for.
///
/// # Errors
///
/// There is no such kind.
pub(super) fn check_kind(query: &Query) -> Result<(), Refusal> {
    listed_kind(query).map(drop).ok_or_else(|| bad_query("blocklisttype"))
}

fn listed_kind(query: &Query) -> Option<ListedKind> {
    let Some(word) = query.value("blocklisttype") else { return Some(ListedKind::Committed) };
    [("committed", ListedKind::Committed), ("uncommitted", ListedKind::Uncommitted), ("all", ListedKind::All)]
        .into_iter()
        .find_map(|(known, kind)| word.eq_ignore_ascii_case(known).then_some(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(list: &str) -> Result<Vec<String>, &'static str> {
        let ids = AzureBlocks.list(list.as_bytes()).map_err(|refusal| refusal.service.unwrap().code)?;
        Ok(ids.into_iter().map(|id| String::from_utf8(id.0).unwrap()).collect())
    }

    /// Put Block List of Azure's documentation.
    #[test]
    fn a_list_names_blocks_in_their_order() {
        let list = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<BlockList>\n  <Latest>Yg==</Latest>\n  \
                    <Uncommitted>YQ==</Uncommitted>\n  <Latest> Yg== </Latest>\n</BlockList>";
        assert_eq!(read(list), Ok(vec!["b".to_owned(), "a".to_owned(), "b".to_owned()]));
        for empty in ["<BlockList/>", "<BlockList></BlockList>", "<?xml version='1.0'?><BlockList>\n</BlockList>"] {
            assert_eq!(read(empty), Ok(vec![]), "{empty}");
        }
    }

    #[test]
    fn a_block_of_the_current_blob_cannot_be_listed() {
        assert_eq!(read("<BlockList><Committed>YQ==</Committed></BlockList>"), Err("InvalidBlockList"));
        assert_eq!(read("<BlockList><Latest>a</Latest></BlockList>"), Err("InvalidBlockList"));
        let long = BASE64_STANDARD.encode([0; ID_BYTES_MAX + 1]);
        assert_eq!(read(&format!("<BlockList><Latest>{long}</Latest></BlockList>")), Err("InvalidBlockList"));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for document in [
            "",
            "YQ==",
            "<Blocks><Latest>YQ==</Latest></Blocks>",
            "<BlockList><Other>YQ==</Other></BlockList>",
            "<BlockList><Latest>YQ==</BlockList>",
            "<BlockList><Latest>&a;</Latest></BlockList>",
            "<!DOCTYPE a [<!ENTITY a \"YQ==\">]><BlockList><Latest>&a;</Latest></BlockList>",
        ] {
            assert_eq!(read(document), Err("InvalidXmlDocument"), "{document}");
        }
        assert!(AzureBlocks.list(&[0xff]).is_err());
    }

    #[test]
    fn blocks_are_shown_by_their_kind() {
        let blocks = [(BlockId(b"a".to_vec()), 3)];
        let shown = |target: &str| AzureBlocks.shown(target.as_bytes(), &blocks).body;
        let start = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>";
        let uncommitted =
            "<UncommittedBlocks><Block><Name>YQ==</Name><Size>3</Size></Block></UncommittedBlocks></BlockList>";
        let of = |kind| shown(&format!("/c/b?comp=blocklist&blocklisttype={kind}"));
        assert_eq!(of("uncommitted"), [start, uncommitted].concat());
        assert_eq!(of("ALL"), [start, "<CommittedBlocks></CommittedBlocks>", uncommitted].concat());
        let committed = [start, "<CommittedBlocks></CommittedBlocks></BlockList>"].concat();
        assert_eq!((of("committed"), shown("/c/b?comp=blocklist")), (committed.clone(), committed));
    }
}
