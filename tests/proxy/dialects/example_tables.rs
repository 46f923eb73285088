//! The example files for entities of tables, in front of a service that checks no tag: the SDK as it is, and the
//! requests that it does not send.

use crate::{
    dialects::azure_sdk::{passes, python},
    operations::example_files::{start_changed, start_in_front_of},
    support::{
        azure::assert_common,
        backend::{Answer, Backend, Request},
        leases::{acquire, lease, release},
        nginx::Nginx,
        raw::{get, put, put_if_match, send},
        response::Response,
        tables,
    },
};

const ENTITY: &str = "/people(PartitionKey='a',RowKey='1')";
const MERGE: &str = "MERGE";

/// Checks an error: its status and name, in the field and in the document.
#[track_caller]
fn assert_error(response: &Response, status: u16, code: &str) {
    let told = (response.status, response.header("x-ms-error-code"));
    assert_eq!(told, (status, Some(code)), "{response:?}");
    assert_common(response);
    assert_eq!(response.headers.all("content-type"), ["application/json"], "{response:?}");
    let document: serde_json::Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!(document["odata.error"]["code"], code, "{document}");
    assert!(document["odata.error"]["message"]["value"].is_string(), "{document}");
}

/// Checks a success without content.
#[track_caller]
fn assert_done(response: &Response) {
    assert_eq!((response.status, response.text()), (204, ""), "{response:?}");
    assert_eq!(response.headers.all("content-length"), [""; 0], "{response:?}");
    assert_common(response);
}

/// A write is signed for its own method, so the read of an entity in its name is refused. A service that checks signatures
/// judges the tags itself.
#[tokio::test]
async fn the_sdk_for_tables_signs_writes_to_a_service_that_checks_them() {
    let backend = tables::start_checking().await;
    let probing = start_in_front_of(backend.addr(), "azure-table.toml").await;
    assert!(passes(python(), "tables_signed.py", probing.addr()).await.contains("the read for a write is refused"));
    let delegating =
        |text: String| text.replace("etag = \"upstream\"", "etag = \"delegate\"").replace("compare =", "# compare =");
    let proxy = start_changed(backend.addr(), "azure-table.toml", delegating).await;
    assert!(passes(python(), "tables_signed.py", proxy.addr()).await.contains("the service judges the tag"));
}

/// A blob beside the tables: its lease is that of the table with its name.
#[tokio::test]
async fn the_lease_of_a_blob_guards_a_table() {
    let (backend, nginx) = (tables::start().await, Nginx::start().await);
    let locks = nginx.root().join("locks");
    std::fs::create_dir(&locks).expect("a container");
    for table in ["people", "orders"] {
        std::fs::write(locks.join(table), "").expect("a blob");
    }
    let beside = |text: String| text.replace("127.0.0.1:9001", &nginx.addr().to_string());
    let proxy = start_changed(backend.addr(), "azure-designated-blob.toml", beside).await;
    passes(python(), "designated_blob.py", proxy.addr()).await;
}

#[tokio::test]
async fn the_sdk_for_tables_works_in_front_of_a_service_without_checks() {
    let backend = tables::start().await;
    let proxy = start_in_front_of(backend.addr(), "azure-table.toml").await;
    passes(python(), "tables.py", proxy.addr()).await;
    let batches = backend.requests().iter().filter(|request| request.target.contains("$batch")).count();
    assert_eq!(batches, 0);
}

/// `compare = "opaque"`: the weak tag that the service gave is what If-Match must repeat, unlike in RFC 9110 13.1.1.
#[tokio::test]
async fn entities_change_with_the_weak_tag_of_the_service() {
    let backend = tables::start().await;
    let proxy = start_in_front_of(backend.addr(), "azure-table.toml").await;
    let addr = proxy.addr();
    assert_error(&put_if_match(addr, ENTITY, "*", "{}").await, 404, "ResourceNotFound");
    assert_done(&put(addr, ENTITY, &[], "{}").await);
    let mut tag = get(addr, ENTITY).await.etag();
    assert_eq!(tag, "W/\"datetime'2026-11-21T10%3A00%3A00.0000001Z'\"");

    for method in ["PUT", MERGE, "PATCH", "DELETE"] {
        let write = async |tag: &str| send(addr, method, ENTITY, &[("If-Match", tag)], "{}").await;
        let written = backend.count(method, ENTITY);
        for stale in [tag.replace("00.0", "00.9").as_str(), tag.trim_start_matches("W/")] {
            assert_error(&write(stale).await, 412, "UpdateConditionNotSatisfied");
        }
        assert_eq!(backend.count(method, ENTITY), written, "{method} was refused");
        let current = write(&tag).await;
        assert_done(&current);
        if method != "DELETE" {
            assert_error(&write(&tag).await, 412, "UpdateConditionNotSatisfied");
            assert_ne!(current.etag(), tag);
            tag = current.etag();
        }
    }
    assert_error(&get(addr, ENTITY).await, 404, "ResourceNotFound");
}

/// Old SDKs wrap a merge in a POST, as `OData` before version 4 does. It is judged as what it is, and sent as it came.
#[tokio::test]
async fn a_method_that_a_post_wraps_is_judged() {
    let backend = tables::start().await;
    let proxy = start_in_front_of(backend.addr(), "azure-table.toml").await;
    let addr = proxy.addr();
    assert_done(&put(addr, ENTITY, &[], "{\"one\":1}").await);
    let mut tag = get(addr, ENTITY).await.etag();
    for method in [MERGE, "PUT", "DELETE"] {
        let wrapped = async |tag: &str| {
            send(addr, "POST", ENTITY, &[("X-HTTP-Method", method), ("If-Match", tag)], "{\"two\":2}").await
        };
        assert_error(&wrapped("W/\"other\"").await, 412, "UpdateConditionNotSatisfied");
        assert_done(&wrapped(&tag).await);
        if method == MERGE {
            let merged = get(addr, ENTITY).await;
            assert!(merged.text().contains("\"one\":1") && merged.text().contains("\"two\":2"), "{merged:?}");
        }
        if method != "DELETE" {
            tag = get(addr, ENTITY).await.etag();
        }
    }
    assert_eq!(backend.count("POST", ENTITY), 3, "each was sent once, as it came");
    assert_error(&get(addr, ENTITY).await, 404, "ResourceNotFound");
    for (method, field) in [("POST", "X-HTTP-Method-Override"), ("PUT", "X-HTTP-Method")] {
        assert_eq!(send(addr, method, ENTITY, &[(field, MERGE)], "{}").await.status, 400, "{method} {field}");
    }
    assert_eq!(send(addr, "POST", "/people", &[("X-HTTP-Method", MERGE)], "{}").await.status, 405);
}

/// The service knows best what it refuses, if it says so in the form that the SDKs read.
#[tokio::test]
async fn an_error_of_the_service_passes_as_it_is() {
    let backend = Backend::start().await;
    let own = r#"{"odata.error":{"code":"PropertiesNeedValue","message":{"lang":"en-US","value":"No."}}}"#;
    let is_own = |request: &Request| request.target.contains("own");
    backend.serve(move |request| {
        let media_type = if is_own(request) { "application/json;odata=nometadata" } else { "text/plain" };
        Answer::status(400).header("Content-Type", media_type).header("x-ms-version", "2026-04-06").body(own)
    });
    let proxy = start_in_front_of(backend.addr(), "azure-table.toml").await;
    let inserted = send(proxy.addr(), "POST", "/own", &[], "{}").await;
    assert_eq!((inserted.status, inserted.text()), (400, own), "{inserted:?}");
    assert_eq!(inserted.headers.all("x-ms-version"), ["2026-04-06"], "that of the service: {inserted:?}");
    assert_error(&send(proxy.addr(), "POST", "/other", &[], "{}").await, 400, "InvalidInput");
}

/// No byte of these reaches the service: they could change an entity under a second key, or several at once.
#[tokio::test]
async fn an_entity_is_written_under_one_name() {
    let backend = tables::start().await;
    let proxy = start_in_front_of(backend.addr(), "azure-table.toml").await;
    let addr = proxy.addr();
    for (method, target, status, code) in [
        ("PUT", "/people(RowKey='1',PartitionKey='a')", 400, "InvalidUri"),
        (MERGE, "/people(PartitionKey='a',%20RowKey='1')", 400, "InvalidUri"),
        ("PUT", "/people", 405, "UnsupportedHttpVerb"),
        ("DELETE", ENTITY, 400, "MissingRequiredHeader"),
        ("POST", "/$batch", 501, "NotImplemented"),
        ("PUT", "/people?comp=acl", 501, "NotImplemented"),
    ] {
        assert_error(&send(addr, method, target, &[], "{}").await, status, code);
    }
    assert_eq!(backend.requests().len(), 0);

    // A quote may be encoded: that is the same name.
    assert_done(&put(addr, ENTITY, &[], "{}").await);
    let (tag, encoded) = (get(addr, ENTITY).await.etag(), ENTITY.replace('\'', "%27"));
    assert_done(&put_if_match(addr, &encoded, &tag, "{}").await);
    assert_error(&put_if_match(addr, ENTITY, &tag, "{}").await, 412, "UpdateConditionNotSatisfied");

    // So may a slash end it, as some clients send it.
    let (tag, ended) = (get(addr, ENTITY).await.etag(), format!("{ENTITY}/"));
    assert_error(&put_if_match(addr, &ended, "W/\"other\"", "{}").await, 412, "UpdateConditionNotSatisfied");
    assert_done(&put_if_match(addr, ENTITY, &tag, "{}").await);
    assert_error(&put_if_match(addr, &ended, &tag, "{}").await, 412, "UpdateConditionNotSatisfied");
}

/// One lease for all entities of a table, as with a designated blob.
#[tokio::test]
async fn a_table_is_locked_as_a_whole() {
    let backend = tables::start().await;
    let proxy = start_in_front_of(backend.addr(), "azure-table-pessimistic.toml").await;
    let (addr, table) = (proxy.addr(), "/people/people");
    let entities = ["1", "2"].map(|row| format!("{table}(PartitionKey='a',RowKey='{row}')"));
    assert_error(&put(addr, &entities[0], &[], "{}").await, 412, "LeaseIdMissing");
    // A20: no client can hold a lease of a missing resource.
    assert_eq!(send(addr, "POST", "/people/Tables", &[], r#"{"TableName":"people"}"#).await.status, 201);
    let lock = acquire(addr, table, "30").await;
    assert_error(&lease(addr, "POST", table, &[]).await, 409, "LeaseAlreadyPresent");
    let holder = [("Lease-Id", lock.id.as_str())];
    for entity in &entities {
        assert_error(&put(addr, entity, &[], "{}").await, 412, "LeaseIdMissing");
        assert_done(&put(addr, entity, &holder, "{}").await);
        assert_eq!(get(addr, entity).await.status, 200, "all may read");
    }
    let inserted = r#"{"PartitionKey":"a","RowKey":"3"}"#;
    assert_error(&send(addr, "POST", table, &[], inserted).await, 412, "LeaseIdMissing");
    assert_eq!(send(addr, "POST", table, &holder, inserted).await.status, 201);

    // Another table has a lease of its own.
    let elsewhere = put(addr, "/orders/orders(PartitionKey='a',RowKey='1')", &holder, "{}").await;
    assert_error(&elsewhere, 412, "LeaseNotPresentWithBlobOperation");

    // Tags are judged as well.
    let tag = get(addr, &entities[0]).await.etag();
    let change = async || put(addr, &entities[0], &[holder[0], ("If-Match", &tag)], "{}").await;
    assert_done(&change().await);
    assert_error(&change().await, 412, "UpdateConditionNotSatisfied");

    release(addr, table, &lock.id).await;
    assert_error(&put(addr, &entities[1], &holder, "{}").await, 412, "LeaseNotPresentWithBlobOperation");
}
