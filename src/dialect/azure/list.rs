//! Lists of blobs: the parameters of a page, and the document that shows it.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use http::{HeaderName, header};
use percent_encoding::percent_decode;

use super::{
    BLOCK_BLOB, LEASE_DURATION, LEASE_STATE, LEASE_STATUS,
    query::Query,
    refusals::{bad_query, invalid, unknown_query},
};
use crate::{
    core::{
        objects::{
            description::CONTENT_MD5,
            folders::{Item, Listing, Page},
        },
        refusal::Refusal,
    },
    dialect::xml,
};

/// The largest number of items on a page, which is also the default.
const ITEMS_MAX: usize = 5_000;

/// The largest number of items on a page whose items are read. Each of them costs requests to the backend.
pub(super) const READ_ITEMS_MAX: usize = 100;

/// A name that begins with it comes after all others.
const LAST_CHARACTER: &str = "\u{10ffff}";

/// The parameters of the query that a list of blobs takes.
pub(super) const PARAMETERS: [&str; 5] = ["prefix", "delimiter", "marker", "maxresults", "include"];

/// Reads the parameters of a page of blobs. `has_metadata`: whether its route keeps metadata.
///
/// # Errors
///
/// A value is invalid, or the backend cannot serve it.
pub(super) fn read(query: &Query, has_metadata: bool) -> Result<Listing, Refusal> {
    let prefix = query.value("prefix").unwrap_or_default();
    if !is_beginning_of_name(prefix) {
        return Err(bad_query("prefix"));
    }
    let reads_items = includes_metadata(query, has_metadata)?;
    // The backend knows folders. Groups by another delimiter are made of the names on the page.
    let shows_folders = query.value("delimiter") == Some("/");
    let max_items = max_items(query, if reads_items { READ_ITEMS_MAX } else { ITEMS_MAX })?;
    Ok(Listing {
        prefix: prefix.to_owned(),
        shows_folders,
        from: from(query)?,
        max_items,
        has_only_folders: false,
        reads_items,
    })
}

/// True if a list shows metadata. The proxy keeps nothing of deleted blobs, and has no snapshots: a list that includes
/// them is the same one.
pub(super) fn includes_metadata(query: &Query, has_metadata: bool) -> Result<bool, Refusal> {
    let mut is_included = false;
    for part in query.value("include").unwrap_or_default().split(',') {
        match part {
            "" | "deleted" | "snapshots" => {}
            "metadata" if has_metadata => is_included = true,
            _ => return Err(unknown_query()),
        }
    }
    Ok(is_included)
}

/// The name that a page begins with.
pub(super) fn from(query: &Query) -> Result<String, Refusal> {
    match query.value("marker") {
        Some(marker) => name_of(marker).ok_or_else(|| bad_query("marker")),
        None => Ok(String::new()),
    }
}

/// The largest number of items on a page: what the client wants, but at most this number.
pub(super) fn max_items(query: &Query, most: usize) -> Result<usize, Refusal> {
    let wanted =
        query.value("maxresults").map(|number| number.parse::<usize>().map_err(|_error| bad_query("maxresults")));
    match wanted.transpose()?.unwrap_or(most) {
        0 => Err(invalid("OutOfRangeQueryParameterValue", "The value of maxresults is at least 1.")),
        wanted => Ok(wanted.min(most)),
    }
}

/// True if a name of a blob can begin like this. It becomes part of a path to the backend.
pub(super) fn is_beginning_of_name(prefix: &str) -> bool {
    let folders = prefix.rsplit_once('/').map_or("", |(folders, _)| folders);
    let is_folder = |name: &str| !matches!(name, "" | "." | "..");
    let has_folders = prefix.contains('/');
    (!has_folders || folders.split('/').all(is_folder))
        && !prefix.contains(|character: char| character == '\\' || character.is_control())
}

fn name_of(marker: &str) -> Option<String> {
    String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(marker).ok()?).ok()
}

/// Returns the document with a page of the blobs of the container with this path.
pub(super) fn page(path: &[u8], query: &Query, page: &Page) -> String {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let (account, container) = path.split_at(path.iter().rposition(|&octet| octet == b'/').map_or(0, |end| end + 1));
    let [account, container] = [account, container].map(|part| percent_decode(part).decode_utf8_lossy());
    let mut body =
        xml::Writer::begin_with("EnumerationResults", &[("ServiceEndpoint", &account), ("ContainerName", &container)]);
    show_parameters(&mut body, query);
    let group = |name| group_of(name, query);
    let mut last_group = None;
    body.element("Blobs", |body| {
        for item in &page.items {
            match group(&item.name).or(Some(&*item.name).filter(|_| item.is_folder())) {
                None => body.element("Blob", |body| show_blob(body, item)),
                shown if shown == last_group => {}
                shown => {
                    body.element("BlobPrefix", |body| body.text("Name", shown.unwrap_or_default()));
                    last_group = shown;
                }
            }
        }
    });
    // The rest of a group that was shown is left out.
    let next = page.next.as_deref().map(|next| match group(next) {
        shown @ Some(group) if shown == last_group => [group, LAST_CHARACTER].concat(),
        _ => next.to_owned(),
    });
    body.text("NextMarker", &marker(next.as_deref()));
    body.end("EnumerationResults")
}

/// Repeats the parameters of a list.
pub(super) fn show_parameters(body: &mut xml::Writer, query: &Query) {
    for (name, element) in
        [("prefix", "Prefix"), ("marker", "Marker"), ("maxresults", "MaxResults"), ("delimiter", "Delimiter")]
    {
        if let Some(value) = query.value(name).filter(|value| !value.is_empty()) {
            body.text(element, value);
        }
    }
}

/// The marker by which the next page begins, or nothing.
pub(super) fn marker(next: Option<&str>) -> String {
    next.map(|name| BASE64_URL_SAFE_NO_PAD.encode(name)).unwrap_or_default()
}

/// Returns the beginning of a name that stands for all names with it: up to the first delimiter behind the prefix. A
/// folder of the backend stands for its names already.
fn group_of<'a>(name: &'a str, query: &Query) -> Option<&'a str> {
    let delimiter = query.value("delimiter").filter(|delimiter| !matches!(*delimiter, "" | "/"))?;
    let prefix = query.value("prefix").unwrap_or_default();
    let (before, _) = name.strip_prefix(prefix)?.split_once(delimiter)?;
    name.get(..prefix.len() + before.len() + delimiter.len())
}

/// Shows the facts about a blob in the index of its folder. The tag is not there: only a read of the blob labels its
/// state, and shows its lease and its metadata.
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
    use crate::core::{http::request_target::split_query, tags::http_date::HttpDate};

    fn shown_at(target: &[u8], page: &Page) -> String {
        let (path, query) = split_query(target);
        super::page(path, &Query::read(query.unwrap_or_default()).unwrap(), page)
    }

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
        let read = Listing { max_items: READ_ITEMS_MAX, reads_items: true, ..all };
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
        assert_eq!(listing("delimiter=-"), Ok(Listing { max_items: ITEMS_MAX, ..Listing::default() }));
        let both = Listing { max_items: READ_ITEMS_MAX, reads_items: true, ..Listing::default() };
        assert_eq!(listing("include=deleted,metadata,snapshots"), Ok(both));
        assert_eq!(listing("include=metadata,tags"), Err("UnsupportedQueryParameter"));
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
        let expected = "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"/account/\" \
                        ContainerName=\"docs&quot;\">\
                        <MaxResults>2</MaxResults><Delimiter>/</Delimiter><Blobs><Blob><Name>a&amp;b</Name><Properties>\
                        <Last-Modified>Sun, 06 Nov 1994 08:49:37 GMT</Last-Modified><Content-Length>3</Content-Length>\
                        <BlobType>BlockBlob</BlobType></Properties></Blob><BlobPrefix><Name>folder/</Name></BlobPrefix>\
                        </Blobs><NextMarker>bmV4dA</NextMarker></EnumerationResults>";
        assert_eq!(shown_at(target, &page), expected);
    }

    /// The names of a page, with those that stand for others in brackets, and the name that the next page begins with.
    fn grouped(names: &[&str], next: Option<&str>, query: &str) -> (Vec<String>, String) {
        let item =
            |name: &&str| Item { name: (*name).to_owned(), len: 0, modified: None, fields: None, metadata: Vec::new() };
        let page = Page { items: names.iter().map(item).collect(), next: next.map(str::to_owned) };
        let shown = shown_at(format!("/docs?restype=container&comp=list&{query}").as_bytes(), &page);
        let (blobs, marker) = shown.split_once("</Blobs><NextMarker>").expect("a list");
        let name = |part: &str| {
            let (before, name) = part.split_once("<Name>")?;
            let name = name.split_once("</Name>")?.0;
            Some(if before.ends_with("<BlobPrefix>") { format!("[{name}]") } else { name.to_owned() })
        };
        let parts = blobs.split_inclusive("</Name>").filter_map(name).collect();
        (parts, name_of(marker.split('<').next().unwrap()).unwrap())
    }

    #[test]
    fn any_delimiter_groups_the_names_behind_the_prefix() {
        let names = ["a", "b-1", "b-1-2", "b-c/d-e", "c/d-e", "c/d-f"];
        let shown = |expected: &[&str]| (expected.iter().map(ToString::to_string).collect::<Vec<_>>(), String::new());
        assert_eq!(grouped(&names, None, "delimiter=-"), shown(&["a", "[b-]", "[c/d-]"]));
        let behind = grouped(&names[1..4], None, "delimiter=-&prefix=b-");
        assert_eq!(behind, shown(&["b-1", "[b-1-]", "[b-c/d-]"]));
        assert_eq!(grouped(&names, None, ""), shown(&names));
    }

    /// A group is on one page.
    #[test]
    fn the_next_page_begins_behind_a_group_that_was_shown() {
        let next = |next: &str| grouped(&["a", "b-1"], Some(next), "delimiter=-").1;
        assert_eq!(next("b-2"), "b-\u{10ffff}");
        assert!("b-2" < &*next("b-2") && &*next("b-2") < "b.");
        for other in ["b", "c", "c-1"] {
            assert_eq!(next(other), other);
        }
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
        let shown = shown_at(b"/docs?restype=container&comp=list", &Page { items: vec![item], next: None });
        let expected = "<Blob><Name>a</Name><Properties><Last-Modified>Sun, 06 Nov 1994 08:49:38 GMT</Last-Modified>\
                        <Etag>1-2</Etag><Content-Length>4</Content-Length><Content-Type>text/x</Content-Type>\
                        <Content-MD5>kAFQmDzST7DWlj99KOF/cg==</Content-MD5><BlobType>BlockBlob</BlobType>\
                        <LeaseStatus>locked</LeaseStatus><LeaseState>leased</LeaseState></Properties>\
                        <Metadata><Owner>&lt;a&gt;</Owner></Metadata></Blob>";
        assert!(shown.contains(expected), "{shown}");
    }
}
