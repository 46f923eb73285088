//! Reload: the name of a resource changes, by the key of a touched one, by the servers of an identity, or by the place
//! where retries are recognised.

use std::sync::Arc;

use super::reload::{A_WHILE, GUARDED, OTHER_KEY, begin_reload, done, file, put_later, refused, start};
use crate::support::{
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::{Connection, put, send},
};

const PROJECT: &str = "/projects/1";
const ITEM: &str = "/projects/1/items/a";

/// The file of a proxy whose items change their projects, and whose projects have this key.
fn file_of_projects(backend: &Backend, key: &str) -> String {
    let file = file(backend, GUARDED);
    let (tables, route) = file.split_once("[[routes]]").expect("a route");
    let route = |name: &str, path: &str, lines: &str| {
        let renamed = route.replace("\"all\"", name).replace("\"/{*rest}\"", path);
        format!("[[routes]]{renamed}\nrequire = \"never\"\n{lines}\n")
    };
    let projects = route("\"projects\"", "\"/projects/{project}\"", &format!("key = \"{key}\""));
    let touches = "also_changes = [\"/projects/{project}\"]";
    let items = route("\"items\"", "\"/projects/{project}/items/{item}\"", touches);
    format!("{tables}{projects}{items}")
}

/// Rule 20: an item that is uploaded across the change would mark its project under a name that no request looks up.
#[tokio::test]
async fn an_upload_across_a_change_of_the_key_of_what_it_touches_is_refused_untouched() {
    let backend = Backend::start().await;
    backend.put(PROJECT, "0");
    let proxy = Arc::new(Proxy::start(&file_of_projects(&backend, "{path}")).await);
    let mut client = Connection::open(proxy.addr()).await;
    let head = format!("PUT {ITEM} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    client.send_bytes(head).await;
    assert_eq!(client.read_head().await.0, 100, "the upload has begun");
    client.send_bytes("ha").await;
    proxy.rewrite(&file_of_projects(&backend, "/project/{project}"));
    done(&proxy.reload(&[]).await, "routes changed: projects");
    client.send_bytes("lf").await;
    client.read_response().await.refused(409, "write-in-flight");
    assert_eq!(backend.count("PUT", ITEM), 0);
    assert_eq!(put(proxy.addr(), ITEM, &[], "whole").await.status, 201);
}

/// Rule 20: the item in flight has marked its project under the old key.
#[tokio::test]
async fn a_change_of_the_key_of_what_is_touched_waits_for_the_writes_that_touch_it() {
    let backend = Backend::start().await;
    backend.put(PROJECT, "0");
    let proxy = Arc::new(Proxy::start(&file_of_projects(&backend, "{path}")).await);
    let first = backend.hold("PUT", ITEM);
    let writer = put_later(&proxy, ITEM, None, "x");
    let held = first.arrived().await;
    proxy.rewrite(&file_of_projects(&backend, "/project/{project}"));
    let reload = begin_reload(&proxy, &[]).await;
    assert!(!reload.is_finished());
    held.answer(Answer::stored()).await;
    assert_eq!(writer.await.unwrap().status, 201);
    done(&reload.await.unwrap(), "routes changed: projects");
}

/// The file of a proxy with two upstreams, each with this server, and a route to each.
fn file_of_two(backend: &Backend, [blue, green]: [&Backend; 2]) -> String {
    let file = file(backend, GUARDED);
    let (head, _) = file.split_once("[upstreams").expect("an upstream");
    let upstreams = [("blue", blue), ("green", green)].map(|(name, server)| {
        format!(
            "[upstreams.{name}]\nservers = [\"{}\"]\nlate_write_window = \"1s\"\n[[routes]]\nname = \"{name}\"\n\
             path = \"/{name}/{{id}}\"\nupstream = \"{name}\"\npolicy = \"optimistic\"\n\
             require = \"never\"\n",
            server.addr()
        )
    });
    format!("{head}{}", upstreams.concat())
}

/// Rule 20: after the swap the other route leads to the server that is still at work on the write.
#[tokio::test]
async fn servers_that_change_places_wait_for_the_writes_under_way() {
    let [one, two] = [Backend::start().await, Backend::start().await];
    let proxy = Arc::new(Proxy::start(&file_of_two(&one, [&one, &two])).await);
    let first = one.hold("PUT", "/blue/1");
    let writer = put_later(&proxy, "/blue/1", None, "lost");
    let held = first.arrived().await;
    proxy.rewrite(&file_of_two(&one, [&two, &one]));
    let reload = begin_reload(&proxy, &[]).await;
    assert!(!reload.is_finished());
    held.answer(Answer::stored()).await;
    assert_eq!(writer.await.unwrap().status, 201);
    done(&reload.await.unwrap(), "routes changed: blue, green");
    assert_eq!(put(proxy.addr(), "/green/1", &[], "there").await.status, 201);
    assert_eq!((one.count("PUT", "/green/1"), two.count("PUT", "*")), (1, 0));
}

/// Rule 21: the retry would have another resource key, and be applied again.
#[tokio::test]
async fn another_key_where_retries_are_recognised_has_to_be_forced() {
    let keyed = |route: &str| format!("{route}\nidempotency = \"accept\"\nrequire = \"never\"");
    let (backend, proxy) = start(&keyed(GUARDED)).await;
    let post = async || send(proxy.addr(), "POST", "/doc", &[("Idempotency-Key", "\"k\"")], "+").await.status;
    assert_eq!(post().await, 204);
    proxy.rewrite(&file(&backend, &keyed(OTHER_KEY)));
    refused(&proxy.reload(&[]).await, 1, "routes all: their resources get other keys");
    assert_eq!((post().await, backend.count("POST", "/doc")), (204, 1), "it is recognised");
    done(&proxy.reload(&["--force"]).await, "routes changed: all");
}

/// The file of a proxy with a route for items, whose key this is, and one for documents.
fn file_of_items(backend: &Backend, key: &str) -> String {
    let items = "name = \"items\"\npath = \"/items/{item}\"\nupstream = \"backend\"\npolicy = \"optimistic\"";
    let file = file(backend, "require = \"never\"").replace("/{*rest}", "/docs/{doc}");
    format!("{file}\n[[routes]]\n{items}\nrequire = \"never\"\ncollections = \"none\"\nkey = \"{key}\"\n")
}

/// Rule 20: a MOVE in flight has marked its destination under the old key.
#[tokio::test]
async fn a_change_of_the_key_of_a_destination_waits_for_the_move_that_leads_there() {
    let backend = Backend::start().await;
    backend.put("/docs/1", "one");
    let proxy = Arc::new(Proxy::start(&file_of_items(&backend, "{path}")).await);
    let first = backend.hold("MOVE", "/docs/1");
    let addr = proxy.addr();
    let mover = tokio::spawn(async move { send(addr, "MOVE", "/docs/1", &[("Destination", "/items/1")], "").await });
    let held = first.arrived().await;
    proxy.rewrite(&file_of_items(&backend, "{item}"));
    let reload = begin_reload(&proxy, &[]).await;
    let second = put_later(&proxy, "/items/1", None, "two");
    tokio::time::sleep(A_WHILE).await;
    assert_eq!((backend.count("PUT", "/items/1"), reload.is_finished()), (0, false));
    held.answer(Answer::stored()).await;
    assert_eq!(mover.await.unwrap().status, 201);
    done(&reload.await.unwrap(), "routes changed: items");
    assert_eq!(second.await.unwrap().status, 204);
    assert_eq!(backend.content("/items/1").as_deref(), Some("two"));
}

/// Rule 20: a MOVE that is sent across the change would claim its destination under a name that no request looks up.
#[tokio::test]
async fn a_move_across_a_change_of_the_key_of_its_destination_is_refused_untouched() {
    let backend = Backend::start().await;
    backend.put("/docs/1", "one");
    let proxy = Arc::new(Proxy::start(&file_of_items(&backend, "{path}")).await);
    let mut client = Connection::open(proxy.addr()).await;
    let fields = "Host: a\r\nDestination: /items/1\r\nContent-Length: 4\r\nExpect: 100-continue";
    client.send_bytes(format!("MOVE /docs/1 HTTP/1.1\r\n{fields}\r\n\r\n")).await;
    assert_eq!(client.read_head().await.0, 100, "the upload has begun");
    client.send_bytes("ha").await;
    proxy.rewrite(&file_of_items(&backend, "{item}"));
    done(&proxy.reload(&[]).await, "routes changed: items");
    client.send_bytes("lf").await;
    client.read_response().await.refused(409, "write-in-flight");
    assert_eq!(backend.count("MOVE", "/docs/1"), 0);
}
