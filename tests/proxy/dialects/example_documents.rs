//! The example file for documents of Cosmos DB, in front of a store that checks no tag: the SDK as it is.

use std::fs;

use crate::{
    dialects::azure_sdk::{node, passes, python},
    operations::example_files::start_in_front_of,
    support::{documents, nginx::Nginx, proxy::Proxy},
};

#[tokio::test]
async fn the_sdk_for_documents_works_in_front_of_a_store_without_checks() {
    let store = documents::start().await;
    let proxy = start_in_front_of(store.addr(), "cosmos-document.toml").await;
    passes(python(), "cosmos.py", proxy.addr()).await;
}

/// A plain file server with the directives that the file names, and a proxy in front of it.
async fn start_files() -> (Nginx, Proxy) {
    let directives = "etag off; if_modified_since off; default_type application/json; rewrite ^(/.+)/$ $1 last;
    error_page 404 @missing;
    location @missing { return 404 '{\"code\":\"NotFound\",\"message\":\"no such document\"}'; }
    location = / { return 200 '{\"id\":\"local\",\"writableLocations\":[],\"readableLocations\":[]}'; }
    location = /dbs/shop { return 200 '{\"id\":\"shop\",\"_rid\":\"AAAAAA==\"}'; }
    location = /dbs/shop/colls/orders {
      return 200 '{\"id\":\"orders\",\"_rid\":\"AAAAAAAAAAA=\",\"partitionKey\":{\"paths\":[\"/kind\"],\"kind\":\"Hash\"}}';
    }";
    let nginx = Nginx::with(directives).await;
    let proxy = start_in_front_of(nginx.addr(), "cosmos-files.toml").await;
    (nginx, proxy)
}

/// The tag is in what clients read, and not in what is stored.
fn stores_no_tag(nginx: &Nginx) {
    let stored = fs::read_to_string(nginx.root().join("dbs/shop/colls/orders/docs/count")).expect("a document");
    assert!(!stored.contains("_etag"), "{stored}");
}

#[tokio::test]
async fn the_sdk_for_documents_works_in_front_of_a_plain_file_server() {
    let (nginx, proxy) = start_files().await;
    passes(python(), "cosmos_files.py", proxy.addr()).await;
    stores_no_tag(&nginx);
}

#[tokio::test]
async fn so_does_the_sdk_for_javascript() {
    let (nginx, proxy) = start_files().await;
    passes(node(), "cosmos_files.cjs", proxy.addr()).await;
    stores_no_tag(&nginx);
}
