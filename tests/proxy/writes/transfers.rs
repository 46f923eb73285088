//! COPY and MOVE change two resources: both are claimed, and each is judged by its own route (DESIGN, sections 3 and 4).

use std::net::SocketAddr;

use crate::{
    stores::shared_store::{addrs, pair},
    support::{
        backend::{Answer, Backend, Validators},
        child::Child,
        clients::python_program,
        engines::Engine,
        leases::{acquire, leasing},
        nginx::Nginx,
        proxy::{Proxy, Setup},
        raw::{get, put, put_if_match, put_when_free, race_through, request_bytes, send},
        response::Response,
    },
    writes::races::{only_winner, refused_but},
};

const DOC: &str = "/doc";
const TEMPORARY: &str = "/doc.tmp";
const METHODS: [&str; 2] = ["COPY", "MOVE"];
/// A route as it was before COPY and MOVE: they need no condition.
const FREE: &str = "require_methods = [\"PUT\", \"PATCH\", \"DELETE\"]";
const WRITERS: usize = 32;

/// Sends a COPY or MOVE of what is at `from`.
async fn transfer(addr: SocketAddr, method: &str, from: &str, to: &str, fields: &[(&str, &str)]) -> Response {
    send(addr, method, from, &[&[("Destination", to)], fields].concat(), "").await
}

/// `KeePass` and others write a temporary file and move it over the original, which another client has changed meanwhile.
#[tokio::test]
async fn a_file_that_is_moved_over_another_one_replaces_nothing_unseen() {
    let nginx = Nginx::with_etags().await;
    for tags in ["etag = \"content\"", "etag = \"upstream\"", "etag = \"version\"\nother_writers = false"] {
        let _ = std::fs::remove_file(nginx.root().join("doc"));
        let proxy = Proxy::to(nginx.addr()).route(tags).start().await;
        let addr = proxy.addr();
        assert_eq!(put(addr, DOC, &[("If-None-Match", "*")], "one").await.status, 201);
        let read = get(addr, DOC).await.etag();
        assert_eq!(put(addr, TEMPORARY, &[("If-None-Match", "*")], "mine").await.status, 201);
        assert_eq!(put_if_match(addr, DOC, &read, "theirs").await.status, 204);
        let unnamed = transfer(addr, "MOVE", TEMPORARY, DOC, &[]).await.refused(428, "precondition-required");
        assert!(unnamed.detail.contains("If-Match"), "{tags}: {}", unnamed.detail);
        let tag = get(addr, TEMPORARY).await.etag();
        let unseen = transfer(addr, "MOVE", TEMPORARY, DOC, &[("If-Match", &tag)]).await;
        let unseen = unseen.refused(428, "precondition-required");
        assert!(unseen.detail.contains("Overwrite: F"), "{tags}: {}", unseen.detail);
        let kept = [("If-Match", &*tag), ("Overwrite", "F")];
        transfer(addr, "MOVE", TEMPORARY, DOC, &kept).await.refused(412, "precondition-failed");
        assert_eq!(get(addr, DOC).await.text(), "theirs", "{tags}");
        assert_eq!(transfer(addr, "MOVE", TEMPORARY, "/doc.bak", &kept).await.status, 204, "{tags}");
        assert_eq!((get(addr, TEMPORARY).await.status, get(addr, "/doc.bak").await.text()), (404, "mine"), "{tags}");
        std::fs::remove_file(nginx.root().join("doc.bak")).unwrap();
    }
}

/// Where the operator lets such a MOVE pass, all tags of what it replaces are of an earlier state.
/// Rule 2: what was moved brings a tag of its own, and no tag from before names its state.
#[tokio::test]
async fn no_tag_from_before_a_transfer_passes_after_it() {
    let tags = ["etag = \"content\"", "etag = \"upstream\"", "etag = \"version\"", "etag = \"header:X-Modified\""];
    for (tags, method) in tags.into_iter().flat_map(|tags| METHODS.map(|method| (tags, method))) {
        for others in ["true", "false"].into_iter().filter(|others| *others == "false" || !tags.contains("version")) {
            // Two files of one size and one second have one tag.
            let nginx = Nginx::with("etag on; add_header X-Modified $sent_http_last_modified;").await;
            let lines = format!("{tags}\nother_writers = {others}\n{FREE}");
            let proxy = Proxy::to(nginx.addr()).route(&lines).start().await;
            let addr = proxy.addr();
            for (target, content) in [(DOC, "one"), (TEMPORARY, "two")] {
                assert_eq!(put(addr, target, &[("If-None-Match", "*")], content).await.status, 201);
            }
            let (before, moved) = (get(addr, DOC).await.etag(), get(addr, TEMPORARY).await.etag());
            let answer = transfer(addr, method, TEMPORARY, DOC, &[]).await;
            assert_eq!((answer.status, answer.header("etag")), (204, None), "{method} {lines}");
            put_if_match(addr, DOC, &before, "lost").await.refused(412, "precondition-failed");
            if method == "MOVE" {
                assert_eq!(get(addr, TEMPORARY).await.status, 404, "{lines}");
                put_if_match(addr, TEMPORARY, &moved, "lost").await.refused(412, "precondition-failed");
            } else {
                let again = put_if_match(addr, TEMPORARY, &moved, "three").await;
                assert_eq!(again.status, 204, "a COPY changes no source: {lines} {again:?}");
            }
            let after = get(addr, DOC).await;
            assert_eq!(after.text(), "two", "{method} {lines}");
            assert_eq!(put_if_match(addr, DOC, &after.etag(), "four").await.status, 204, "{method} {lines}");
        }
    }
}

/// The backend gets the names that it knows itself and its resources by.
#[tokio::test]
async fn the_backend_gets_the_destination_as_its_own() {
    let backend = Backend::start().await;
    let mapped = "strip_prefix = \"/api\"\nadd_prefix = \"/v1\"\nrequire = \"never\"";
    for host_header in ["preserve", "upstream", "docs.internal"] {
        let setup = Proxy::to(backend.addr()).upstream(&format!("host_header = \"{host_header}\""));
        let configuration = setup.route(mapped).configuration().replace("/{*rest}", "/api/{*rest}");
        let proxy = Proxy::start(&configuration).await;
        let fields = [("Overwrite", "T"), ("Depth", "infinity"), ("If-Match", "*"), ("Host", "Docs.test")];
        let (upstream, name) = (backend.addr().to_string(), host_header.to_owned());
        let host = match host_header {
            "preserve" => "Docs.test",
            "upstream" => &upstream,
            _ => &name,
        };
        for destination in ["/api/b%20c", "https://docs.test/api/b%20c"] {
            backend.put("/v1/a", "one");
            let answer = transfer(proxy.addr(), "MOVE", "/api/a", destination, &fields).await;
            assert!(matches!(answer.status, 201 | 204), "{host_header}: {answer:?}");
            let sent = backend.seen("MOVE", "/v1/a").pop().expect("a MOVE");
            let expected = format!("http://{host}/v1/b%20c");
            assert_eq!((sent.header("destination"), sent.header("host")), (Some(&*expected), Some(host)));
            assert_eq!((sent.header("overwrite"), sent.header("depth")), (Some("T"), Some("infinity")));
            assert_eq!((sent.header("if-match"), sent.header("destination-lease-id")), (None, None));
            assert_eq!(backend.content("/v1/b%20c").as_deref(), Some("one"));
        }
    }
}

/// Rule 4: what is refused has reached nothing.
#[tokio::test]
async fn a_transfer_that_leads_elsewhere_is_refused_untouched() {
    let backend = Backend::start().await;
    let proxy = Proxy::to(backend.addr()).route("require = \"never\"").start().await;
    backend.put("/a", "one");
    for (fields, status, code) in [
        (&[][..], 400, "malformed-request"),
        (&[("Destination", "/b"), ("Destination", "/b")], 400, "malformed-request"),
        (&[("Destination", "/b?c")], 400, "malformed-request"),
        (&[("Destination", "b")], 400, "malformed-request"),
        (&[("Destination", "/b"), ("Overwrite", "maybe")], 400, "malformed-request"),
        (&[("Destination", "/b"), ("Depth", "1")], 400, "malformed-request"),
        (&[("Destination", "/b%2Fc")], 400, "ambiguous-target"),
        (&[("Destination", "http://other.test/b")], 502, "destination-elsewhere"),
        (&[("Destination", "/%61")], 403, "destination-is-source"),
        (&[("Destination", "/b"), ("Connection", "Overwrite")], 400, "malformed-request"),
        (&[("Destination", "/b"), ("If-Match", "\"stale\"")], 412, "precondition-failed"),
    ] {
        let before = backend.count("*", "*") - backend.count("GET", "*");
        for method in METHODS {
            send(proxy.addr(), method, "/a", fields, "").await.refused(status, code);
        }
        assert_eq!(backend.count("*", "*") - backend.count("GET", "*"), before, "{fields:?}");
    }
}

/// A collection as the source or as the destination would change members that were not judged.
#[tokio::test]
async fn a_collection_is_neither_copied_nor_replaced() {
    let nginx = Nginx::start().await;
    let proxy = Proxy::to(nginx.addr()).route("require = \"never\"\ncollections = \"detect\"").start().await;
    for target in ["/d/one", "/e/two", "/file"] {
        assert_eq!(put(proxy.addr(), target, &[], "one").await.status, 201);
    }
    for method in METHODS {
        for (from, to) in [("/d/", "/f/"), ("/d/", "/e/"), ("/file", "/e/")] {
            let refused = transfer(proxy.addr(), method, from, to, &[]).await.refused(501, "not-supported");
            assert!(refused.detail.contains("one by one"), "{method} {from} {to}: {}", refused.detail);
        }
    }
    assert!(nginx.root().join("e/two").exists() && nginx.root().join("d/one").exists());
    assert_eq!(transfer(proxy.addr(), "MOVE", "/d/one", "/e/one", &[]).await.status, 204);
}

/// `WsgiDAV` compares the scheme and the host in Destination with its own, and knows of collections.
#[tokio::test]
async fn a_server_of_webdav_copies_and_moves() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::create_dir(directory.path().join("root")).expect("a directory");
    let (addr, _server) = Child::on_free_port("wsgidav", &directory.path().join("log"), |addr| {
        let mut command = python_program("wsgidav");
        let (host, port) = (addr.ip().to_string(), addr.port().to_string());
        command.args(["--host", &host, "--port", &port, "--auth", "anonymous", "--no-config", "--root"]);
        command.arg(directory.path().join("root"));
        command
    })
    .await;
    let lines = format!("etag = \"upstream\"\ncollections = \"detect\"\n{FREE}");
    let proxy = Proxy::to(addr).route(&lines).start().await;
    let (host, own) = (proxy.addr().to_string(), [("Host", "docs.test")]);
    for target in [DOC, TEMPORARY] {
        assert_eq!(put(proxy.addr(), target, &[("If-None-Match", "*")], target).await.status, 201, "{target}");
    }
    let before = get(proxy.addr(), DOC).await.etag();
    for (method, destination) in [("COPY", format!("http://{host}/copy")), ("MOVE", format!("https://{host}{DOC}"))] {
        let fields = [("Host", &*host)];
        let answer = transfer(proxy.addr(), method, TEMPORARY, &destination, &fields).await;
        assert!(matches!(answer.status, 201 | 204), "{method}: {answer:?}");
        assert_eq!(answer.header("etag"), None, "{method}");
    }
    put_if_match(proxy.addr(), DOC, &before, "lost").await.refused(412, "precondition-failed");
    assert_eq!((get(proxy.addr(), DOC).await.text(), get(proxy.addr(), TEMPORARY).await.status), (TEMPORARY, 404));
    let named = transfer(proxy.addr(), "MOVE", "/copy", "http://docs.test/moved", &own).await;
    assert_eq!(named.status, 201, "by another name of the proxy: {named:?}");
    assert_eq!(send(proxy.addr(), "MKCOL", "/folder", &[], "").await.status, 201);
    for (from, to) in [("/folder", "/other"), ("/moved", "/folder")] {
        transfer(proxy.addr(), "MOVE", from, to, &[]).await.refused(501, "not-supported");
    }
    assert_eq!(transfer(proxy.addr(), "COPY", "/moved", "/folder/copy", &[]).await.status, 201);
}

/// Rule 3: a status that does not tell is unclear for both, and no answer is a doubt on both.
#[tokio::test]
async fn an_outcome_that_is_not_known_counts_for_both() {
    let backend = Backend::start().await;
    let lines = "etag = \"version\"\nother_writers = false\nrequire = \"never\"";
    let setup = Proxy::to(backend.addr()).upstream("late_write_window = \"2s\"").route(lines);
    let proxy = setup.start().await;
    let addr = proxy.addr();
    for (answer, is_in_doubt) in [(Answer::status(207), false), (Answer::close(), true)] {
        for target in [DOC, TEMPORARY] {
            backend.put(target, "one");
        }
        let before = [get(addr, DOC).await.etag(), get(addr, TEMPORARY).await.etag()];
        backend.once("MOVE", TEMPORARY, answer);
        let told = transfer(addr, "MOVE", TEMPORARY, DOC, &[]).await;
        if is_in_doubt {
            assert!(told.refused(502, "upstream-failed").in_doubt);
            for target in [DOC, TEMPORARY] {
                put(addr, target, &[], "late").await.refused(409, "write-in-flight");
            }
        } else {
            assert_eq!(told.status, 207);
        }
        for (target, tag) in [DOC, TEMPORARY].into_iter().zip(before) {
            put_when_free(addr, target, &tag, "lost").await.refused(412, "precondition-failed");
        }
    }
}

/// Rule 21: the destination is part of what is sent again.
#[tokio::test]
async fn a_transfer_with_a_key_is_applied_once() {
    let backend = Backend::with(Validators::Tags).await;
    let proxy = Proxy::to(backend.addr()).route("require = \"never\"\nidempotency = \"accept\"").start().await;
    backend.put("/a", "one");
    let key = ("Idempotency-Key", "\"1\"");
    let first = transfer(proxy.addr(), "MOVE", "/a", "/b", &[key]).await;
    assert_eq!((first.status, first.header("etag")), (201, None));
    let again = transfer(proxy.addr(), "MOVE", "/a", "/b", &[key]).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
    transfer(proxy.addr(), "MOVE", "/a", "/c", &[key]).await.refused(422, "idempotency-mismatch");
    assert_eq!(backend.count("MOVE", "*"), 1);
}

/// The resources that the writes of both routes change too (`also_changes`).
#[tokio::test]
async fn what_changes_with_the_source_and_the_destination_is_touched() {
    let backend = Backend::start().await;
    let setup = Proxy::to(backend.addr()).route("etag = \"version\"\nother_writers = false\nrequire = \"never\"");
    let configuration = setup.configuration();
    let (tables, route) = configuration.split_once("[[routes]]").expect("a route");
    let route = |name: &str, path: &str, lines: &str| {
        format!("[[routes]]{}\n{lines}\n", route.replace("\"all\"", name).replace("\"/{*rest}\"", path))
    };
    let item = |name: &str| {
        let path = format!("\"/{name}/{{item}}\"");
        route(&format!("\"{name}\""), &path, &format!("also_changes = [\"/{name}\"]"))
    };
    let lists = ["left", "right"].map(|name| route(&format!("\"{name}-list\""), &format!("\"/{name}\""), ""));
    let proxy = Proxy::start(&format!("{tables}{}{}{}", lists.concat(), item("left"), item("right"))).await;
    let addr = proxy.addr();
    for target in ["/left", "/right", "/left/1"] {
        backend.put(target, "one");
    }
    for (method, left_changes) in [("COPY", false), ("MOVE", true)] {
        let before = [get(addr, "/left").await.etag(), get(addr, "/right").await.etag()];
        assert!(matches!(transfer(addr, method, "/left/1", "/right/1", &[]).await.status, 201 | 204));
        let after = [get(addr, "/left").await.etag(), get(addr, "/right").await.etag()];
        assert_eq!([before[0] != after[0], before[1] != after[1]], [left_changes, true], "{method}");
    }
    backend.put("/left/2", "two");
    let onto_list = transfer(addr, "MOVE", "/left/2", "/left", &[]).await;
    assert_eq!(onto_list.status, 204, "what is claimed is not touched too: {onto_list:?}");
}

/// One round: writers, movers and copiers of one state, and creators by COPY. Each has its own number.
async fn race_of_all(addrs: &[SocketAddr], nginx: &Nginx, round: usize, context: &str) {
    let (target, created) = (format!("/{round}/doc"), format!("/{round}/new"));
    std::fs::create_dir_all(nginx.root().join(round.to_string())).unwrap();
    let write = |name: &str, text: &str| std::fs::write(nginx.root().join(&name[1..]), text).unwrap();
    write(&target, "the first state");
    for writer in 0..WRITERS {
        write(&format!("/{round}/from-{writer}"), &writer.to_string());
    }
    let tag = get(addrs[round % addrs.len()], &target).await.etag();
    let place = |name: &str, writer: usize| format!("/{round}/{name}-{writer}");
    let request = |writer: usize| match writer % 4 {
        0 => request_bytes("PUT", &target, &[("If-Match", &tag)], writer.to_string().as_bytes()),
        1 => request_bytes("MOVE", &target, &[("If-Match", &tag), ("Destination", &place("moved", writer))], b""),
        2 => request_bytes("COPY", &target, &[("If-Match", &tag), ("Destination", &place("copied", writer))], b""),
        _ => {
            let from = format!("/{round}/from-{writer}");
            request_bytes("COPY", &from, &[("Overwrite", "F"), ("Destination", &created)], b"")
        }
    };
    let responses = race_through(addrs, (0..WRITERS).map(request).collect()).await;
    let of = |kinds: &[usize]| -> Vec<usize> { (0..WRITERS).filter(|writer| kinds.contains(&(writer % 4))).collect() };
    let answers = |writers: &[usize]| writers.iter().map(|writer| responses[*writer].clone()).collect::<Vec<_>>();
    let changers = of(&[0, 1]);
    let winner = changers[only_winner(&answers(&changers), context)];
    let creators = of(&[3]);
    let creator = only_winner(&answers(&creators), &format!("creation in {context}"));
    refused_but(creator, &answers(&creators));
    let read = |target: &str| std::fs::read_to_string(nginx.root().join(&target[1..])).ok();
    assert_eq!(read(&created), Some(creators[creator].to_string()), "{context}");
    if winner % 4 == 0 {
        assert_eq!(read(&target), Some(winner.to_string()), "{context}");
    } else {
        assert_eq!((read(&target), read(&place("moved", winner))), (None, Some("the first state".to_owned())));
    }
    for writer in of(&[1, 2]).into_iter().filter(|writer| *writer != winner) {
        let name = if writer % 4 == 1 { "moved" } else { "copied" };
        let arrived = read(&place(name, writer));
        let expected = (responses[writer].status == 204).then(|| "the first state".to_owned());
        assert_eq!(arrived, expected, "{context}: {writer} got {}", responses[writer].status);
    }
}

/// One round: the holder of a lease replaces its resource by a MOVE, and no other client does.
async fn race_of_holders(addrs: &[SocketAddr], nginx: &Nginx, round: usize, context: &str) {
    let target = format!("/{round}/leased");
    let write = |name: &str, text: &str| std::fs::write(nginx.root().join(&name[1..]), text).unwrap();
    write(&target, "leased");
    for writer in 0..WRITERS {
        write(&format!("/{round}/from-{writer}"), &writer.to_string());
    }
    let grant = acquire(addrs[0], &target, "60").await;
    let holder = round % WRITERS;
    let request = |writer: usize| {
        let id = (writer == holder).then_some(("Destination-Lease-Id", &*grant.id));
        let fields: Vec<_> = [("Destination", &*target)].into_iter().chain(id).collect();
        request_bytes("MOVE", &format!("/{round}/from-{writer}"), &fields, b"")
    };
    let responses = race_through(addrs, (0..WRITERS).map(request).collect()).await;
    assert_eq!(only_winner(&responses, context), holder, "{context}");
    for (writer, response) in responses.iter().enumerate().filter(|(writer, _)| *writer != holder) {
        response.refused(412, "lease-id-missing");
        assert!(nginx.root().join(format!("{round}/from-{writer}")).exists(), "{context}");
    }
    assert_eq!(std::fs::read_to_string(nginx.root().join(&target[1..])).unwrap(), holder.to_string(), "{context}");
}

/// The lines of a route for each way to know what is current, with leases.
const MODES: [&str; 4] = [
    "etag = \"content\"",
    "etag = \"upstream\"",
    "etag = \"content\"\nother_writers = false",
    "etag = \"version\"\nother_writers = false",
];

fn to(nginx: &Nginx, mode: &str) -> Setup {
    let lease = "policy = \"pessimistic\"\nlease.auth = \"none\"\nlease.max = \"60s\"";
    Proxy::to(nginx.addr()).route(&format!("{lease}\nrequire = \"never\"\n{mode}"))
}

/// Rule 1: of all writes that are based on one state, one changes it, under any of its names.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_writers_movers_and_copiers_of_one_state_none_loses_an_update() {
    for mode in MODES {
        let nginx = Nginx::with_etags().await;
        let proxy = to(&nginx, mode).route("hash_wait = \"10s\"").start().await;
        for round in 0..20 {
            race_of_all(&[proxy.addr()], &nginx, round, &format!("round {round} with {mode}")).await;
            race_of_holders(&[proxy.addr()], &nginx, round, &format!("round {round} with {mode}")).await;
        }
    }
}

/// The same through two proxies that share a store.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_writers_movers_and_copiers_through_two_proxies_none_loses_an_update() {
    for engine in Engine::all().await {
        for (place, mode) in MODES.into_iter().enumerate() {
            let nginx = Nginx::with_etags().await;
            let proxies = pair(&engine, to(&nginx, mode)).await;
            for round in (0..3).map(|round| 100 * place + round) {
                let context = format!("round {round} with {mode}");
                race_of_all(&addrs(&proxies), &nginx, round, &context).await;
                race_of_holders(&addrs(&proxies), &nginx, round, &context).await;
            }
        }
    }
}

/// A client may not learn by a MOVE about the lease of a resource that it may not read.
#[tokio::test]
async fn a_client_without_rights_is_told_nothing_of_the_destination() {
    let backend = Backend::start().await;
    let proxy = leasing(&backend).route("lease.auth = \"none\"").start().await;
    for target in ["/a", "/secret"] {
        backend.put(target, "one");
    }
    acquire(proxy.addr(), "/secret", "60").await;
    backend.always("GET", "/secret", |_| Answer::status(403));
    let fields = [("Authorization", "Basic bm9ib2R5"), ("If-Match", "*")];
    let answer = transfer(proxy.addr(), "COPY", "/a", "/secret", &fields).await;
    assert!(matches!(answer.status, 403 | 412), "{answer:?}");
    assert_eq!(backend.count("COPY", "*"), 0);
}
