//! The example file for documents of Cosmos DB, in front of a store that checks no tag: the SDK as it is.

use std::fs;

use crate::{
    dialects::azure_sdk::{passes, python},
    operations::example_files::start_in_front_of,
    support::{documents, nginx::Nginx},
};

#[tokio::test]
async fn the_sdk_for_documents_works_in_front_of_a_store_without_checks() {
    let store = documents::start().await;
    let proxy = start_in_front_of(store.addr(), "cosmos-document.toml").await;
    passes(python(), "cosmos.py", proxy.addr()).await;
}

/// The directives are those that the file names.
#[tokio::test]
async fn the_sdk_for_documents_works_in_front_of_a_plain_file_server() {
    let directives = "etag off; if_modified_since off; default_type application/json; rewrite ^(/.+)/$ $1 last;
    location = / { return 200 '{\"id\":\"local\",\"writableLocations\":[],\"readableLocations\":[]}'; }
    location = /dbs/shop { return 200 '{\"id\":\"shop\",\"_rid\":\"AAAAAA==\"}'; }
    location = /dbs/shop/colls/orders {
      return 200 '{\"id\":\"orders\",\"_rid\":\"AAAAAAAAAAA=\",\"partitionKey\":{\"paths\":[\"/kind\"],\"kind\":\"Hash\"}}';
    }";
    let nginx = Nginx::with(directives).await;
    let proxy = start_in_front_of(nginx.addr(), "cosmos-files.toml").await;
    passes(python(), "cosmos_files.py", proxy.addr()).await;
    let stored = fs::read_to_string(nginx.root().join("dbs/shop/colls/orders/docs/count")).expect("a document");
    assert!(!stored.contains("_etag"), "{stored}");
}
