//! Lists of the files in a collection, made from the indexes that the upstream shows of its folders.

use http::{Method, StatusCode, header};
use percent_encoding::utf8_percent_encode;
use pingora::http::RequestHeader;

use crate::{
    body::MemoryUse,
    core::{
        http::request_target::{RESERVED_IN_PATH, join_query, split_query},
        objects::folders::{FOLDERS_MAX, IndexEntry, Listing, Page, Walk, WalkStep, read_index, without_documents},
        refusal::{Code, Refusal},
        tags::validators::tells_absence,
    },
    guard::{Halt, Request, ask_for_identity, refusals, remove_conditions},
    service::Service,
    upstream::{BufferedBody, fields::request_head, read_whole},
};

/// The largest index of a folder, in bytes: about 100,000 files. It is held in memory until it is read.
const INDEX_BYTES_MAX: usize = 16 * 1024 * 1024;

impl Service<'_> {
    /// Returns a page of the files in the collection that a request names. Other clients may change files meanwhile, so
    /// a page shows each folder as it was at some moment.
    pub(crate) async fn page(&self, request: &Request, listing: &Listing) -> Result<Page, Halt> {
        let mut walk = Walk::new(listing.clone());
        loop {
            match walk.step() {
                WalkStep::Visit(folder) => {
                    let entries = self.index(request, &folder).await?;
                    walk.add(&folder, entries);
                }
                WalkStep::Done(page) => return Ok(page),
                WalkStep::TooDeep => {
                    let detail = format!("files below more than {FOLDERS_MAX} folders cannot be listed here");
                    return Err(Refusal::new(Code::NotSupported, detail).into());
                }
            }
        }
    }

    /// Asks the upstream for the index of a folder. A folder that does not exist has no entries.
    async fn index(&self, request: &Request, folder: &str) -> Result<Vec<IndexEntry>, Halt> {
        let upstream = request.upstream();
        let head = index_head(request, folder)?;
        let exchange = self.guard.ask(request, head).await;
        let mut exchange = exchange.map_err(refusals::of_read)?;
        match exchange.head().status {
            StatusCode::OK => {}
            status if tells_absence(status) => {
                exchange.discard().await;
                return Ok(Vec::new());
            }
            status => {
                exchange.discard().await;
                let detail = format!("the upstream answered {} when asked for a folder", status.as_u16());
                return Err(Refusal::new(Code::UpstreamFailed, detail).into());
            }
        }
        let budget = self.guard.bodies().budget_for(MemoryUse::Response);
        match read_whole(&mut exchange, INDEX_BYTES_MAX, upstream.timeout, budget).await.map_err(refusals::of_read)? {
            BufferedBody::Complete(index) => {
                exchange.finish().await;
                let entries = read_index(&index.chunks().concat()).ok_or_else(no_index)?;
                Ok(match request.rules().metadata_suffix.as_deref() {
                    Some(suffix) => without_documents(entries, suffix),
                    None => entries,
                })
            }
            BufferedBody::TooLarge(_) | BufferedBody::TooSlow(_) => Err(too_large().into()),
        }
    }
}

/// Returns the head of the request for a folder's index. It has the credentials of the client.
fn index_head(request: &Request, folder: &str) -> Result<Box<RequestHeader>, Halt> {
    let mut head = RequestHeader::clone(&request.head);
    let (path, query) = split_query(request.head.raw_path());
    head.set_method(Method::GET);
    head.set_raw_path(&target_in(path, folder, query))?;
    let mut head = request_head(&head, 0).map_err(|error| refusals::of_head(&error))?;
    remove_conditions(&mut head);
    head.remove_header(&header::RANGE);
    ask_for_identity(&mut head)?;
    Ok(head)
}

/// Returns the target of a file or a folder in the collection with this path.
pub(crate) fn target_in(collection: &[u8], name: &str, query: Option<&[u8]>) -> Vec<u8> {
    let collection = collection.strip_suffix(b"/").unwrap_or(collection);
    let name: String = utf8_percent_encode(name, RESERVED_IN_PATH).collect();
    join_query(&[collection, b"/", name.as_bytes()].concat(), query)
}

fn no_index() -> Refusal {
    let detail = "the upstream shows no index of its folders in JSON, which lists are made of (nginx: autoindex on; and \
                  autoindex_format json;)";
    Refusal::new(Code::NotSupported, detail)
}

fn too_large() -> Refusal {
    let detail = "the upstream's index of a folder is too large or too slow to be read: keep fewer files in one folder";
    Refusal::new(Code::NotSupported, detail)
}
