//! Delete Container and Delete Table are writes of all that is below (DESIGN, section 3, rules 1 and 2).

use std::net::SocketAddr;

use crate::support::{
    azure::{lease, put_blob},
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::{get, put, put_if_match, send},
    response::Response,
    tables,
};

const CAT: &str = "/photos/cat.txt";

async fn containers(backend: &Backend, max_wait: &str) -> Proxy {
    let server = backend.addr();
    Proxy::start(&format!(
        "[server]\n{{listen}}\n[upstreams.blobs]\nservers = [\"{server}\"]\n[defaults]\nupstream = \"blobs\"\n\
         policy = \"pessimistic\"\ndialect = \"azure\"\netag = \"version\"\nother_writers = false\n\
         claim = {{ max_wait = \"{max_wait}\" }}\n\
         [[routes]]\nname = \"containers\"\npath = \"/{{container}}\"\nlease = {{ guards = [\"delete\"] }}\n\
         [[routes]]\nname = \"blobs\"\npath = \"/{{container}}/{{*blob}}\"\nlease = {{ guards = [\"write\"] }}\n"
    ))
    .await
}

async fn remove(addr: SocketAddr) -> Response {
    send(addr, "DELETE", "/photos?restype=container", &[], "").await
}

#[tokio::test]
async fn a_container_and_its_blobs_are_not_written_beside_each_other() {
    let backend = Backend::start().await;
    let proxy = containers(&backend, "50ms").await;
    let addr = proxy.addr();
    assert_eq!(send(addr, "PUT", "/photos?restype=container", &[], "").await.status, 201);
    let upload = backend.hold("PUT", CAT);
    let (uploaded, ()) = tokio::join!(put_blob(addr, CAT, &[], "one"), async {
        let upload = upload.arrived().await;
        let refused = remove(addr).await;
        assert!(matches!(refused.status, 409 | 503), "{refused:?}");
        assert_eq!(backend.count("DELETE", "/photos/"), 0, "the upload comes first");
        upload.answer(Answer::stored()).await;
    });
    assert_eq!(uploaded.status, 201, "{uploaded:?}");
    let tag = uploaded.etag();

    let removal = backend.hold("DELETE", "/photos/");
    let (removed, ()) = tokio::join!(remove(addr), async {
        let removal = removal.arrived().await;
        let refused = put_blob(addr, CAT, &[("If-Match", &tag)], "two").await;
        assert!(matches!(refused.status, 409 | 503), "{refused:?}");
        assert_eq!(backend.count("PUT", CAT), 1, "the removal comes first");
        removal.answer(Answer::stored()).await;
    });
    assert_eq!(removed.status, 202, "{removed:?}");
    assert_eq!(put_blob(addr, CAT, &[("If-Match", &tag)], "two").await.status, 412);
}

/// As in Azure, only the lease of the container counts. Those of the blobs end with them.
#[tokio::test]
async fn the_leases_of_blobs_end_with_their_container() {
    let backend = Backend::start().await;
    let proxy = containers(&backend, "10s").await;
    let addr = proxy.addr();
    for _ in 0..2 {
        assert_eq!(send(addr, "PUT", "/photos?restype=container", &[], "").await.status, 201);
        assert_eq!(put_blob(addr, CAT, &[], "one").await.status, 201);
        assert_eq!(lease(addr, CAT, "acquire", &[("x-ms-lease-duration", "60")]).await.status, 201);
        assert_eq!(put_blob(addr, CAT, &[], "two").await.status, 412, "it is leased");
        assert_eq!(remove(addr).await.status, 202);
    }
}

/// The entities of a table are those whose keys begin with its name.
#[tokio::test]
async fn a_removed_table_takes_its_entities_along_and_no_others() {
    let backend = tables::start().await;
    let server = backend.addr();
    let proxy = Proxy::start(&format!(
        "[server]\n{{listen}}\n[upstreams.tables]\nservers = [\"{server}\"]\n\
         [[routes]]\nname = \"entities\"\npath = \"/{{entity}}\"\nupstream = \"tables\"\npolicy = \"optimistic\"\n\
         dialect = \"azure-table\"\netag = \"version\"\nother_writers = false\nrequire = \"never\"\n"
    ))
    .await;
    let addr = proxy.addr();
    let entity = |table: &str| format!("/{table}(PartitionKey='a',RowKey='1')");
    let mut tags = Vec::new();
    for table in ["people", "peoples"] {
        assert_eq!(put(addr, &entity(table), &[], "{}").await.status, 204);
        tags.push(get(addr, &entity(table)).await.etag());
    }
    assert_eq!(send(addr, "DELETE", "/Tables('people')", &[], "").await.status, 204);
    assert_eq!(put_if_match(addr, &entity("people"), &tags[0], "{}").await.status, 412);
    assert_eq!(put_if_match(addr, &entity("peoples"), &tags[1], "{}").await.status, 204);
}
