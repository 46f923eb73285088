//! Lists of blobs: the parameters of a page, and the document that shows it.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use http::{HeaderName, header};
use percent_encoding::percent_decode;

use super::{
    BLOCK_BLOB, LEASE_DURATION, LEASE_STATE, LEASE_STATUS,
    query::Query,
    refusals::{bad_query, invalid, not_served, unknown_query},
};
use crate::{
    core::{
        http::request_target::split_query,
        objects::{
            description::CONTENT_MD5,
            folders::{Item, Listing, Page},
        },
        refusal::Refusal,
    },
    dialect::{ShownDocument, lists::ListGrammar, xml},
};

/// The largest number of items on a page, which is also the default.
const ITEMS_MAX: usize = 5_000;

/// The largest number of items on a page with metadata. Each of them costs requests to the backend.
const READ_ITEMS_MAX: usize = 100;

/// The parameters of the query that a list takes.
pub(super) const PARAMETERS: [&str; 5] = ["prefix", "delimiter", "marker", "maxresults", "include"];

/// Lists of Azure Blob Storage.
#[derive(Debug)]
pub(super) struct AzureLists;

/// Reads the parameters of a page. `has_metadata`: whether its route keeps metadata.
///
/// # Errors
///
/// A value is invalid, or the backend cannot serve it.
pub(super) fn read(query: &Query, has_metadata: bool) -> Result<Listing, Refusal> {
    let reads_files = query.value("include").is_some_and(|parts| !parts.is_empty());
    if reads_files && (!has_metadata || query.value("include") != Some("metadata")) {
        return Err(unknown_query());
    }
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
    let most = if reads_files { READ_ITEMS_MAX } else { ITEMS_MAX };
    Ok(Listing { prefix: prefix.to_owned(), shows_folders, from, max_items: max_items.min(most), reads_files })
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

/// Shows what the index of a folder tells of a blob. The tag is not there: only a read of the blob labels its state, and
/// shows its lease and its metadata.
fn show_blob(body: &mut xml::Writer, item: &Item) {
    let field = |name: HeaderName| item.fields.as_ref()?.get(name)?.to_str().ok();
    let indexed = item.modified.map(|modified| modified.to_string());
    let (date, len) = (field(header::LAST_MODIFIED).or(indexed.as_deref()), item.len.to_string());
    body.text("Name", &item.name);
    body.element("Properties", |body| {
        for (element, value) in [
            ("Last-Modified", date),
            ("Etag", field(header::ETAG).map(|tag| tag.trim_matches('"'))),
            ("Content-Length", field(header::CONTENT_LENGTH).or(Some(&len))),
            ("Content-Type", field(header::CONTENT_TYPE)),
            ("Content-Encoding", field(header::CONTENT_ENCODING)),
            ("Content-Language", field(header::CONTENT_LANGUAGE)),
            ("Content-MD5", field(HeaderName::from_static(CONTENT_MD5))),
            ("Cache-Control", field(header::CACHE_CONTROL)),
            ("Content-Disposition", field(header::CONTENT_DISPOSITION)),
            ("BlobType", Some(BLOCK_BLOB)),
            ("LeaseStatus", field(LEASE_STATUS)),
            ("LeaseState", field(LEASE_STATE)),
            ("LeaseDuration", field(LEASE_DURATION)),
        ] {
            if let Some(value) = value {
                body.text(element, value);
            }
        }
    });
    if item.fields.is_some() {
        body.element("Metadata", |body| item.metadata.iter().for_each(|(name, value)| body.text(name, value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tags::http_date::HttpDate;

    fn listing(query: &str) -> Result<Listing, &'static str> {
        let query = Query::read(query.as_bytes()).map_err(|refusal| refusal.service.unwrap().code)?;
        read(&query, true).map_err(|refusal| refusal.service.unwrap().code)
    }

    #[test]
    fn a_page_has_parameters() {
        let all = Listing { max_items: ITEMS_MAX, ..Listing::default() };
        assert_eq!(listing("comp=list&restype=container"), Ok(all.clone()));
        let marker = BASE64_URL_SAFE_NO_PAD.encode("ü/b");
        let wanted = listing(&format!("prefix=a%2Fb&delimiter=%2F&marker={marker}&maxresults=2"));
        let expected = Listing {
            prefix: "a/b".to_owned(),
            shows_folders: true,
            from: "ü/b".to_owned(),
            max_items: 2,
            ..all.clone()
        };
        assert_eq!(wanted, Ok(expected));
        assert_eq!(listing("maxresults=6000&delimiter=&include="), Ok(all.clone()));
        let read = Listing { max_items: READ_ITEMS_MAX, reads_files: true, ..all };
        assert_eq!(listing("include=metadata"), Ok(read.clone()));
        assert_eq!(listing("include=metadata&maxresults=2"), Ok(Listing { max_items: 2, ..read }));
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
        assert_eq!(listing("include=metadata,snapshots"), Err("UnsupportedQueryParameter"));
        let query = Query::read(b"include=metadata").unwrap();
        assert!(super::read(&query, false).is_err(), "the route keeps no metadata");
    }

    /// List Blobs of Azure's documentation.
    #[test]
    fn a_page_is_shown_as_azure_shows_it() {
        let modified = HttpDate::parse(b"Sun, 06 Nov 1994 08:49:37 GMT");
        let item =
            |name: &str, modified| Item { name: name.to_owned(), len: 3, modified, fields: None, metadata: Vec::new() };
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

    #[test]
    fn a_blob_that_was_read_is_shown_with_its_tag_lease_and_metadata() {
        let fields = [
            ("etag", "\"1-2\""),
            ("last-modified", "Sun, 06 Nov 1994 08:49:38 GMT"),
            ("content-length", "4"),
            ("content-type", "text/x"),
            ("content-md5", "kAFQmDzST7DWlj99KOF/cg=="),
            ("x-ms-lease-state", "leased"),
            ("x-ms-lease-status", "locked"),
            ("x-ms-version", "1"),
        ];
        let field = |(name, value): (&'static str, &str)| (HeaderName::from_static(name), value.parse().unwrap());
        let fields = Some(fields.into_iter().map(field).collect());
        let metadata = vec![("Owner".to_owned(), "<a>".to_owned())];
        let item = Item { name: "a".to_owned(), len: 3, modified: None, fields, metadata };
        let shown = AzureLists.page(b"/docs", &Page { items: vec![item], next: None }).body;
        let expected = "<Blob><Name>a</Name><Properties><Last-Modified>Sun, 06 Nov 1994 08:49:38 GMT</Last-Modified>\
                        <Etag>1-2</Etag><Content-Length>4</Content-Length><Content-Type>text/x</Content-Type>\
                        <Content-MD5>kAFQmDzST7DWlj99KOF/cg==</Content-MD5><BlobType>BlockBlob</BlobType>\
                        <LeaseStatus>locked</LeaseStatus><LeaseState>leased</LeaseState></Properties>\
                        <Metadata><Owner>&lt;a&gt;</Owner></Metadata></Blob>";
        assert!(shown.contains(expected), "{shown}");
    }
}
