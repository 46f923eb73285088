//! Lists of blobs: the parameters of a page, and the document that shows it.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use percent_encoding::percent_decode;

use super::{
    BLOCK_BLOB,
    query::Query,
    refusals::{bad_query, invalid, not_served},
};
use crate::{
    core::{
        folders::{Item, Listing, Page},
        refusal::Refusal,
        target::split_query,
    },
    dialect::{ShownDocument, lists::ListGrammar, xml},
};

/// The largest number of items on a page, which is also the default.
const ITEMS_MAX: usize = 5_000;

/// The parameters of the query that a list takes.
pub(super) const PARAMETERS: [&str; 4] = ["prefix", "delimiter", "marker", "maxresults"];

/// Lists of Azure Blob Storage.
#[derive(Debug)]
pub(super) struct AzureLists;

/// Reads the parameters of a page.
///
/// # Errors
///
/// A value is invalid, or the backend cannot serve it.
pub(super) fn read(query: &Query) -> Result<Listing, Refusal> {
    let shows_folders = match query.value("delimiter") {
        None | Some("") => false,
        Some("/") => true,
        Some(_) => return Err(not_served("The only delimiter of lists that is served here is /.")),
    };
    let prefix = query.value("prefix").unwrap_or_default();
    if !is_beginning_of_name(prefix) {
        return Err(bad_query("prefix"));
    }
    let from = match query.value("marker") {
        Some(marker) => name_of(marker).ok_or_else(|| bad_query("marker"))?,
        None => String::new(),
    };
    let max_items = match query.value("maxresults") {
        Some(number) => number.parse::<usize>().map_err(|_error| bad_query("maxresults"))?,
        None => ITEMS_MAX,
    };
    if max_items == 0 {
        return Err(invalid("OutOfRangeQueryParameterValue", "The value of maxresults is at least 1."));
    }
    Ok(Listing { prefix: prefix.to_owned(), shows_folders, from, max_items: max_items.min(ITEMS_MAX) })
}

/// Whether a name of a blob can begin like this. A path to the backend is made of it.
fn is_beginning_of_name(prefix: &str) -> bool {
    let folders = prefix.rsplit_once('/').map_or("", |(folders, _)| folders);
    let is_folder = |name: &str| !matches!(name, "" | "." | "..");
    let has_folders = prefix.contains('/');
    (!has_folders || folders.split('/').all(is_folder))
        && !prefix.contains(|character: char| character == '\\' || character.is_control())
}

fn name_of(marker: &str) -> Option<String> {
    String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(marker).ok()?).ok()
}

impl ListGrammar for AzureLists {
    fn page(&self, target: &[u8], page: &Page) -> ShownDocument {
        let (path, query) = split_query(target);
        let path = path.strip_suffix(b"/").unwrap_or(path);
        let container = path.rsplit(|&octet| octet == b'/').next().unwrap_or_default();
        let container = percent_decode(container).decode_utf8_lossy();
        let query = Query::read(query.unwrap_or_default()).unwrap_or_default();
        let mut body = xml::Writer::begin_with("EnumerationResults", &[("ContainerName", &container)]);
        for (name, element) in
            [("prefix", "Prefix"), ("marker", "Marker"), ("maxresults", "MaxResults"), ("delimiter", "Delimiter")]
        {
            if let Some(value) = query.value(name).filter(|value| !value.is_empty()) {
                body.text(element, value);
            }
        }
        body.element("Blobs", |body| {
            for item in &page.items {
                if item.is_folder() {
                    body.element("BlobPrefix", |body| body.text("Name", &item.name));
                } else {
                    body.element("Blob", |body| show_blob(body, item));
                }
            }
        });
        body.text(
            "NextMarker",
            &page.next.as_ref().map(|name| BASE64_URL_SAFE_NO_PAD.encode(name)).unwrap_or_default(),
        );
        ShownDocument { content_type: xml::CONTENT_TYPE, body: body.end("EnumerationResults") }
    }
}

/// Shows what the index of a folder tells of a blob. The tag is not there: only a read of the blob labels its state.
fn show_blob(body: &mut xml::Writer, item: &Item) {
    body.text("Name", &item.name);
    body.element("Properties", |body| {
        if let Some(modified) = item.modified {
            body.text("Last-Modified", &modified.to_string());
        }
        body.text("Content-Length", &item.len.to_string());
        body.text("BlobType", BLOCK_BLOB);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::http_date::HttpDate;

    fn listing(query: &str) -> Result<Listing, &'static str> {
        let query = Query::read(query.as_bytes()).map_err(|refusal| refusal.service.unwrap().code)?;
        read(&query).map_err(|refusal| refusal.service.unwrap().code)
    }

    #[test]
    fn a_page_has_parameters() {
        let all = Listing { max_items: ITEMS_MAX, ..Listing::default() };
        assert_eq!(listing("comp=list&restype=container"), Ok(all.clone()));
        let marker = BASE64_URL_SAFE_NO_PAD.encode("ü/b");
        let wanted = listing(&format!("prefix=a%2Fb&delimiter=%2F&marker={marker}&maxresults=2"));
        let expected = Listing { prefix: "a/b".to_owned(), shows_folders: true, from: "ü/b".to_owned(), max_items: 2 };
        assert_eq!(wanted, Ok(expected));
        assert_eq!(listing("maxresults=6000&delimiter="), Ok(all));
    }

    #[test]
    fn a_parameter_that_leads_elsewhere_is_refused() {
        let invalid = Err("InvalidQueryParameterValue");
        for prefix in ["/", "../", "a/../", "a/..%2Fb", "./a", "a//b", "a%5Cb", "a%00b", "a/%2e%2e/b"] {
            assert_eq!(listing(&format!("prefix={prefix}")), invalid, "{prefix}");
        }
        for prefix in ["", "a", "..", "a/..", ".a/b", "a/b/", "a%20b"] {
            assert!(listing(&format!("prefix={prefix}")).is_ok(), "{prefix}");
        }
        for query in ["marker=%21", "maxresults=many", "maxresults=-1"] {
            assert_eq!(listing(query), invalid, "{query}");
        }
        assert_eq!(listing("maxresults=0"), Err("OutOfRangeQueryParameterValue"));
        assert_eq!(listing("delimiter=-"), Err("NotImplemented"));
    }

    /// List Blobs of Azure's documentation.
    #[test]
    fn a_page_is_shown_as_azure_shows_it() {
        let modified = HttpDate::parse(b"Sun, 06 Nov 1994 08:49:37 GMT");
        let item = |name: &str, modified| Item { name: name.to_owned(), len: 3, modified };
        let items = vec![item("a&b", modified), item("folder/", None)];
        let page = Page { items, next: Some("next".to_owned()) };
        let target = b"/account/docs%22?restype=container&comp=list&prefix=&maxresults=2&delimiter=/";
        let expected = "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ContainerName=\"docs&quot;\">\
                        <MaxResults>2</MaxResults><Delimiter>/</Delimiter><Blobs><Blob><Name>a&amp;b</Name><Properties>\
                        <Last-Modified>Sun, 06 Nov 1994 08:49:37 GMT</Last-Modified><Content-Length>3</Content-Length>\
                        <BlobType>BlockBlob</BlobType></Properties></Blob><BlobPrefix><Name>folder/</Name></BlobPrefix>\
                        </Blobs><NextMarker>bmV4dA</NextMarker></EnumerationResults>";
        assert_eq!(AzureLists.page(target, &page).body, expected);
    }
}
