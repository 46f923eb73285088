//! Lists of containers: the parameters of a page, and the document that shows it.
//!
//! # Design
//!
//! *Why is each container on a page read?* An index tells the date of a folder, which changes with the files in it. A client
//! that saw it as the date of the container could overwrite metadata that it has not seen.

use http::{HeaderName, header};
use percent_encoding::percent_decode;

use super::{
    LEASE_DURATION, LEASE_STATE, LEASE_STATUS,
    list::{READ_ITEMS_MAX, from, includes_metadata, is_beginning_of_name, marker, max_items, show_parameters},
    query::Query,
    refusals::bad_query,
};
use crate::{
    core::{
        objects::folders::{Item, Listing, Page},
        refusal::Refusal,
    },
    dialect::xml,
};

/// The parameters of the query that a list takes.
pub(super) const PARAMETERS: [&str; 4] = ["prefix", "marker", "maxresults", "include"];

/// Reads the parameters of a page. `has_metadata`: whether its route keeps metadata.
///
/// # Errors
///
/// A value is invalid, or the backend cannot serve it.
pub(super) fn read(query: &Query, has_metadata: bool) -> Result<Listing, Refusal> {
    let prefix = query.value("prefix").unwrap_or_default();
    if prefix.contains('/') || !is_beginning_of_name(prefix) {
        return Err(bad_query("prefix"));
    }
    includes_metadata(query, has_metadata)?;
    Ok(Listing {
        prefix: prefix.to_owned(),
        shows_folders: true,
        from: from(query)?,
        max_items: max_items(query, READ_ITEMS_MAX)?,
        has_only_folders: true,
        reads_items: true,
    })
}

/// Returns the document with a page of the containers of the account with this path.
pub(super) fn page(path: &[u8], query: &Query, page: &Page) -> String {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let endpoint = [&percent_decode(path).decode_utf8_lossy(), "/"].concat();
    let mut body = xml::Writer::begin_with("EnumerationResults", &[("ServiceEndpoint", &endpoint)]);
    show_parameters(&mut body, query);
    let shows_metadata = matches!(includes_metadata(query, true), Ok(true));
    body.element("Containers", |body| {
        for item in &page.items {
            body.element("Container", |body| show(body, item, shows_metadata));
        }
    });
    body.text("NextMarker", &marker(page.next.as_deref()));
    body.end("EnumerationResults")
}

/// Shows the facts about a container that a read of it has found.
fn show(body: &mut xml::Writer, item: &Item, shows_metadata: bool) {
    let field = |name: HeaderName| item.fields.as_ref()?.get(name)?.to_str().ok();
    body.text("Name", item.name.trim_end_matches('/'));
    body.element("Properties", |body| {
        for (element, value) in [
            ("Last-Modified", field(header::LAST_MODIFIED)),
            ("Etag", field(header::ETAG)),
            ("LeaseStatus", field(LEASE_STATUS)),
            ("LeaseState", field(LEASE_STATE)),
            ("LeaseDuration", field(LEASE_DURATION)),
        ] {
            if let Some(value) = value {
                body.text(element, value);
            }
        }
    });
    if shows_metadata {
        body.element("Metadata", |body| item.metadata.iter().for_each(|(name, value)| body.text(name, value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(query: &str) -> Result<Listing, &'static str> {
        let query = Query::read(query.as_bytes()).map_err(|refusal| refusal.service.unwrap().code)?;
        read(&query, true).map_err(|refusal| refusal.service.unwrap().code)
    }

    #[test]
    fn a_page_has_the_folders_of_the_account_alone() {
        let all = Listing {
            shows_folders: true,
            has_only_folders: true,
            reads_items: true,
            max_items: READ_ITEMS_MAX,
            ..Listing::default()
        };
        assert_eq!(listing("comp=list"), Ok(all.clone()));
        assert_eq!(listing("comp=list&include=metadata"), Ok(all.clone()));
        let some = Listing { prefix: "ph".to_owned(), from: "pi/".to_owned(), max_items: 2, ..all };
        assert_eq!(listing(&format!("comp=list&prefix=ph&maxresults=2&marker={}", marker(Some("pi/")))), Ok(some));
        for prefix in ["photos/", "/", "a%2Fb", "a%5C"] {
            assert_eq!(listing(&format!("comp=list&prefix={prefix}")), Err("InvalidQueryParameterValue"), "{prefix}");
        }
        assert_eq!(listing("comp=list&include=system"), Err("UnsupportedQueryParameter"));
        assert!(read(&Query::read(b"comp=list&include=metadata").unwrap(), false).is_err(), "the route keeps none");
    }

    #[test]
    fn a_page_is_shown_as_azure_shows_it() {
        let fields =
            [("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"), ("etag", "\"1\""), ("x-ms-lease-state", "available")];
        let field = |(name, value): (&'static str, &str)| (HeaderName::from_static(name), value.parse().unwrap());
        let photos = Item {
            name: "photos/".to_owned(),
            len: 0,
            modified: None,
            fields: Some(fields.into_iter().map(field).collect()),
            metadata: vec![("Owner".to_owned(), "<a>".to_owned())],
        };
        let hidden = Item { name: "secret/".to_owned(), fields: None, metadata: Vec::new(), ..photos.clone() };
        let shown = |query: &str| {
            let query = Query::read(query.as_bytes()).unwrap();
            super::page(
                b"/account",
                &query,
                &Page { items: vec![photos.clone(), hidden.clone()], next: Some("z/".to_owned()) },
            )
        };
        let expected = "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"/account/\">\
                        <Prefix>p</Prefix><Containers><Container><Name>photos</Name><Properties>\
                        <Last-Modified>Sun, 06 Nov 1994 08:49:37 GMT</Last-Modified><Etag>\"1\"</Etag>\
                        <LeaseState>available</LeaseState></Properties><Metadata><Owner>&lt;a&gt;</Owner></Metadata>\
                        </Container><Container><Name>secret</Name><Properties></Properties><Metadata></Metadata>\
                        </Container></Containers><NextMarker>ei8</NextMarker></EnumerationResults>";
        assert_eq!(shown("comp=list&prefix=p&include=deleted,metadata").replace("&quot;", "\""), expected);
        assert!(!shown("comp=list").contains("Metadata"), "it was not asked for");
    }
}
