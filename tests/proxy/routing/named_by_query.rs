//! Resources that a parameter of the query names, or a field that holds JSON.

use crate::support::{backend::Backend, leases::acquire, proxy::Proxy, raw::send};

/// Rule 18: PHP reads each of them as a write to the leased document, and ASP.NET the one in capitals.
#[tokio::test]
async fn no_other_spelling_of_a_parameter_writes_a_leased_document() {
    let backend = Backend::start().await;
    let lines = "policy = \"pessimistic\"\nkey = \"{query.doc_id}\"\nlease = { absent = \"allow\" }";
    let proxy = Proxy::to(backend.addr()).route(lines).start().await;
    let addr = proxy.addr();
    acquire(addr, "/doc?doc_id=2", "30").await;
    send(addr, "PUT", "/doc?doc_id=2", &[], "thief").await.refused(412, "lease-id-missing");
    for query in [
        "doc.id=2",
        "doc+id=2",
        "doc%20id=2",
        "doc[id=2",
        "doc_id=1&doc.id=2",
        "doc_id=1&doc_id=2",
        "doc_id[]=2",
        "+doc_id=2",
        "doc_id%00=2",
        "%64oc_id=2",
        "DOC_ID=2",
        "a=1;doc_id=2",
    ] {
        let refused = send(addr, "PUT", &format!("/doc?{query}"), &[], "thief").await;
        let problem = refused.refused(400, "ambiguous-target");
        assert!(problem.detail.contains("the resource"), "{}", problem.detail);
    }
    assert!(backend.requests().iter().all(|request| request.method != "PUT"), "no refused write reaches the backend");
}

/// Rule 18: four spellings of a partition are one document, and of four writes with one tag one is applied.
#[tokio::test]
async fn a_partition_has_one_key_in_every_spelling() {
    let backend = Backend::start().await;
    let lines = "key = \"{path}#{header.X-Partition:json}\"\netag = \"version\"\nother_writers = false";
    let proxy = Proxy::to(backend.addr()).route(lines).start().await;
    let write = async |partition: &str, condition: (&str, &str)| {
        send(proxy.addr(), "PUT", "/doc", &[("X-Partition", partition), condition], "x").await
    };
    assert_eq!(write("[\"a\"]", ("If-None-Match", "*")).await.status, 201);
    let tag = send(proxy.addr(), "GET", "/doc", &[("X-Partition", "[\"a\"]")], "").await.etag();
    assert_eq!(write("[ \"a\" ]", ("If-Match", &tag)).await.status, 204);
    for spelling in ["[\"a\"]", "[ \"a\" ]", "[\"\\u0061\"]"] {
        write(spelling, ("If-Match", &tag)).await.refused(412, "precondition-failed");
    }
    let without = send(proxy.addr(), "PUT", "/doc", &[("If-Match", &tag)], "x").await;
    without.refused(400, "ambiguous-target");
    write("['a']", ("If-Match", &tag)).await.refused(400, "ambiguous-target");
}
