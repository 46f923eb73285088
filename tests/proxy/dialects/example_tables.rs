//! The example file for entities of a table, in front of a service that speaks as Azure Table Storage does, and that
//! takes each write for "overwrite whatever is there".

use std::{collections::BTreeMap, sync::Mutex};

use crate::{
    operations::example_files::start_in_front_of,
    support::{
        backend::{Answer, Backend, Request},
        proxy::Proxy,
        raw::{get, put, put_if_match, send},
    },
};

const ENTITY: &str = "/people(PartitionKey='a',RowKey='1')";

/// Entities by their targets, with the number of the write that made them what they are.
#[derive(Default)]
struct Table {
    entities: BTreeMap<String, u64>,
    writes: u64,
}

impl Table {
    /// Never looks at a condition.
    fn answer(&mut self, request: &Request) -> Answer {
        let target = &request.target;
        let tag = |write: u64| format!("W/\"datetime'2026-11-21T10%3A00%3A00.{write:07}Z'\"");
        if matches!(request.method.as_str(), "GET" | "HEAD") {
            return match self.entities.get(target) {
                Some(write) => Answer::status(200).header("ETag", &tag(*write)).body(format!("{{\"write\":{write}}}")),
                None => Answer::status(404),
            };
        }
        if request.method == "DELETE" {
            let status = if self.entities.remove(target).is_some() { 204 } else { 404 };
            return Answer::status(status).applied();
        }
        self.writes += 1;
        let (status, entity) = match request.method.as_str() {
            "POST" => (201, format!("{target}(PartitionKey='b',RowKey='{}')", self.writes)),
            _ => (204, target.clone()),
        };
        let answer = Answer::status(status).header("ETag", &tag(self.writes)).header("Location", &entity);
        self.entities.insert(entity, self.writes);
        answer.applied()
    }
}

async fn start() -> (Backend, Proxy) {
    let backend = Backend::start().await;
    let table = Mutex::new(Table::default());
    backend.always("*", "*", move |request| table.lock().unwrap().answer(request));
    let proxy = start_in_front_of(backend.addr(), "azure-table.toml").await;
    (backend, proxy)
}

/// `compare = "opaque"`: the weak tag that the service gave is what If-Match must repeat, unlike in RFC 9110 13.1.1.
#[tokio::test]
async fn entities_change_with_the_weak_tag_of_the_service() {
    let (backend, proxy) = start().await;
    let addr = proxy.addr();
    assert_eq!(put_if_match(addr, ENTITY, "*", "{}").await.status, 412, "there is nothing yet");
    assert_eq!(put(addr, ENTITY, &[("If-None-Match", "*")], "{}").await.status, 204);
    let mut tag = get(addr, ENTITY).await.etag();
    assert_eq!(tag, "W/\"datetime'2026-11-21T10%3A00%3A00.0000001Z'\"");

    for method in ["PUT", "MERGE", "PATCH", "DELETE"] {
        let write = async |tag: &str| send(addr, method, ENTITY, &[("If-Match", tag)], "{}").await;
        let written = backend.count(method, ENTITY);
        send(addr, method, ENTITY, &[], "{}").await.refused(428, "precondition-required");
        write(&tag.replace("00.0", "00.9")).await.refused(412, "precondition-failed");
        write(tag.trim_start_matches("W/")).await.refused(412, "precondition-failed");
        assert_eq!(backend.count(method, ENTITY), written, "{method} was refused");
        let current = write(&tag).await;
        assert_eq!(current.status, 204, "{method}: {current:?}");
        if method != "DELETE" {
            write(&tag).await.refused(412, "precondition-failed");
            assert_ne!(current.etag(), tag);
            tag = current.etag();
        }
    }
    assert_eq!(get(addr, ENTITY).await.status, 404);
}

#[tokio::test]
async fn an_entity_is_overwritten_when_the_client_says_so_aloud() {
    let (backend, proxy) = start().await;
    let addr = proxy.addr();
    assert_eq!(put(addr, ENTITY, &[("If-None-Match", "*")], "{}").await.status, 204);
    for method in ["PUT", "MERGE", "PATCH", "DELETE"] {
        let written = backend.count(method, ENTITY);
        assert_eq!(send(addr, method, ENTITY, &[("If-Match", "*")], "{}").await.status, 204, "{method}");
        assert_eq!(backend.count(method, ENTITY), written + 1);
    }
    assert_eq!(get(addr, ENTITY).await.status, 404);
}

/// An insert replaces nothing, so it needs no tag; a batch may, so it does.
#[tokio::test]
async fn inserts_are_free_and_batches_are_not() {
    let (backend, proxy) = start().await;
    let addr = proxy.addr();
    let inserted = send(addr, "POST", "/people", &[], "{}").await;
    assert_eq!(inserted.status, 201, "{inserted:?}");
    let entity = inserted.header("location").expect("the new entity's place");
    assert_eq!(put_if_match(addr, entity, &inserted.etag(), "{}").await.status, 204);
    put_if_match(addr, entity, &inserted.etag(), "{}").await.refused(412, "precondition-failed");

    send(addr, "POST", "/$batch", &[], "{}").await.refused(428, "precondition-required");
    assert_eq!(backend.count("POST", "/$batch"), 0);
}
