//! The example file for documents of Cosmos DB, in front of a store that checks no tag: the SDK as it is.

use crate::{
    dialects::azure_sdk::{passes, python},
    operations::example_files::start_in_front_of,
    support::documents,
};

#[tokio::test]
async fn the_sdk_for_documents_works_in_front_of_a_store_without_checks() {
    let store = documents::start().await;
    let proxy = start_in_front_of(store.addr(), "cosmos-document.toml").await;
    passes(python(), "cosmos.py", proxy.addr()).await;
}
