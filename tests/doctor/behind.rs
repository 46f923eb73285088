//! Backends behind ifmatch, and without it.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    diagnosis::{Diagnosis, without},
    support::{
        backend::{
            Answer, Backend,
            style::{Dates, Named, Shown, Style, Tags},
        },
        ports,
        proxy::Proxy,
    },
};

fn url(addr: SocketAddr) -> String {
    format!("http://{addr}/doc")
}

/// A backend whose tags are modification times in seconds.
async fn coarse() -> Backend {
    let named = |target: &str| Named { own: target.to_owned(), whole: None };
    let backend = Backend::in_style(Style {
        tags: Tags::Seconds,
        dates: Dates::Absent,
        shown: Shown::Entity,
        tells: false,
        named,
    })
    .await;
    backend.put("/doc", "one");
    backend
}

/// A backend that shows a write only a second after it: less than doctor's pause, and more than a read takes that
/// follows at once.
async fn lagging() -> Backend {
    const LAG: Duration = Duration::from_secs(1);
    let backend = Backend::start().await;
    // The number of writes, and when the last one came.
    let writes = Arc::new(Mutex::new((0, None::<Instant>)));
    let noted = Arc::clone(&writes);
    backend.always("PUT", "/doc", move |_| {
        let mut writes = noted.lock().expect("nobody panics with it");
        *writes = (writes.0 + 1, Some(Instant::now()));
        Answer::status(204)
    });
    backend.always_where(
        |request| request.method != "PUT",
        move |_| {
            let (count, last) = *writes.lock().expect("nobody panics with it");
            let shown = if last.is_some_and(|last| last.elapsed() < LAG) { count - 1 } else { count };
            Answer::status(200).header("ETag", &format!("\"state-{shown}\"")).body("one")
        },
    );
    backend
}

#[tokio::test]
async fn tags_in_seconds_that_are_said_to_be_unique_are_found_out_by_two_writes() {
    let backend = coarse().await;
    let route = "etag = \"upstream\"\non_write = \"probe\"\netag_after_write = \"always\"";
    let wrong = Proxy::to(backend.addr()).route(&format!("{route}\nunique_tags = true")).start().await;
    Diagnosis::of(&[&url(wrong.addr()), "--write"]).await.reads_and_writes(&[]);
    wrong.logged(&["WARN", "set unique_tags = false"]).await;

    let right = Proxy::to(backend.addr()).route(route).start().await;
    Diagnosis::of(&[&url(right.addr()), "--write"]).await.reads_and_writes(&[]);
}

#[tokio::test]
async fn a_backend_that_judges_nothing_applies_a_wrong_tag() {
    let backend = coarse().await;
    let diagnosis = Diagnosis::of(&[&url(backend.addr()), "--write"]).await;
    diagnosis.checked(
        &without(&["If-Match list", "no condition"], true),
        &[
            ("way", "note"),
            ("If-Match", "note"),
            ("If-None-Match", "note"),
            ("wrong tag", "problem"),
            ("tag in the answer", "note"),
            ("two writes", "note"),
        ],
    );
    diagnosis.mends("problem", "wrong tag", "policy = \"optimistic\"");
}

#[tokio::test]
async fn a_backend_that_lags_is_found() {
    let backend = lagging().await;
    let diagnosis = Diagnosis::of(&[&url(backend.addr()), "--write"]).await;
    diagnosis.checked(
        &without(&["If-Match list", "no condition", "two writes"], true),
        &[
            ("way", "note"),
            ("If-Match", "note"),
            ("If-None-Match", "note"),
            ("wrong tag", "problem"),
            ("letter case", "note"),
            ("format", "note"),
            ("tag in the answer", "note"),
            ("read after write", "problem"),
        ],
    );
    diagnosis.mends("problem", "read after write", "not a replica");
}

/// The first two of three writes fall into different seconds, by chance.
#[tokio::test]
async fn tags_in_seconds_are_coarse_although_a_second_ends_between_two_writes() {
    let backend = Backend::start().await;
    let writes = Arc::new(AtomicUsize::new(0));
    let second = Arc::clone(&writes);
    backend.always("PUT", "/doc", move |_| {
        writes.fetch_add(1, Ordering::SeqCst);
        // The clock of the answers stands still, so only the tags show seconds, on a machine of any speed.
        Answer::status(204).header("Date", "Tue, 24 Nov 2026 12:00:00 GMT")
    });
    backend.always_where(
        |request| request.method != "PUT",
        move |_| {
            // The write that must be refused is the first one.
            let second = second.load(Ordering::SeqCst).min(3);
            Answer::status(200).header("ETag", &format!("\"second-{second}\"")).body("one")
        },
    );
    let diagnosis = Diagnosis::of(&[&url(backend.addr()), "--write"]).await;
    diagnosis.mends("note", "two writes", "unique_tags = false");
}

#[tokio::test]
async fn a_body_with_a_time_in_it_has_no_stable_tag() {
    let started = Instant::now();
    let backend = Backend::start().await;
    backend.always("*", "/doc", move |_| {
        let now = started.elapsed().as_nanos();
        let json = format!("{{\"generated_at\":{now},\"title\":\"one\"}}");
        Answer::status(200).header("Content-Type", "application/json").body(json)
    });
    let proxy = Proxy::to(backend.addr()).start().await;
    let diagnosis = Diagnosis::of(&[&url(proxy.addr()), "--write"]).await;
    let writes = [("wrong tag", "ok"), ("no condition", "ok")];
    diagnosis.hides_all_but("stability", &["way", "tag", "If-Range", "collections", "cache"], &writes);
    diagnosis.mends("problem", "stability", "ignore_json");

    let mended = Proxy::to(backend.addr()).route("ignore_json = [\"/generated_at\"]").start().await;
    Diagnosis::of(&[&url(mended.addr())]).await.reads(&[("stability", "note")]);
}

/// B8: a gateway weakens the tags of bodies, and HEAD has none.
#[tokio::test]
async fn a_head_without_the_weakness_of_bodies_is_as_it_must_be() {
    let backend = Backend::start().await;
    backend.always_where(
        |request| matches!(request.method.as_str(), "GET" | "HEAD"),
        |request| {
            let tag = if request.method == "HEAD" { "\"a\"" } else { "W/\"a\"" };
            Answer::status(200).header("ETag", tag).header("Via", "1.1 ifmatch").body("one")
        },
    );
    let diagnosis = Diagnosis::of(&[&url(backend.addr())]).await;
    assert!(diagnosis.text.contains("HEAD           ok"), "{}", diagnosis.text);
}

/// A server of files by `WebDAV`, one that knows no OPTIONS, and one whose OPTIONS fails: the last one needs a key.
#[tokio::test]
async fn whether_a_delete_could_remove_a_collection_is_asked_for() {
    for (answer, result) in
        [(Answer::status(200).header("DAV", "1, 2"), "ok"), (Answer::status(405), "ok"), (Answer::status(500), "note")]
    {
        let backend = Backend::start().await;
        backend.put("/doc", "one");
        backend.always("OPTIONS", "/doc", move |_| answer.clone());
        let proxy = Proxy::to(backend.addr()).start().await;
        let diagnosis = Diagnosis::of(&[&url(proxy.addr())]).await;
        diagnosis.reads(&[("collections", result)]);
        if result == "note" {
            diagnosis.mends("note", "collections", "collections = \"none\"");
        }
    }
}

/// A backend to which a path in another case, with a format or with an encoded slash is the same resource.
async fn many_named() -> Backend {
    let named = |target: &str| {
        let own = target.to_lowercase().replace("%2f", "/").trim_end_matches(".json").to_owned();
        Named { own, whole: None }
    };
    let style = Style { tags: Tags::Precise, dates: Dates::Absent, shown: Shown::Nowhere, tells: false, named };
    let backend = Backend::in_style(style).await;
    backend.put("/docs/a", "one");
    backend
}

/// Rule 18: doctor tries the names that only the operator can know, and says which key is missing.
#[tokio::test]
async fn other_names_of_one_resource_are_found() {
    let backend = many_named().await;
    let server = |policy: &str, upstream: &str| {
        format!(
            "[server]\n{{listen}}\nspool_dir = \"{{spool}}\"\n[upstreams.app]\nservers = [\"{}\"]\n{upstream}\n\
             [defaults]\nupstream = \"app\"\nkey = \"/docs/{{id}}\"\n\
             [[routes]]\npath = \"/docs/{{id}}\"\npolicy = \"optimistic\"\n{policy}",
            backend.addr()
        )
    };
    let open = "[[routes]]\npath = \"/{*rest}\"\npolicy = \"last-writer-wins\"\n";
    let proxy = Proxy::start(&server(open, "")).await;
    let diagnosis = Diagnosis::of(&[&format!("http://{}/docs/a", proxy.addr())]).await;
    diagnosis.mends("problem", "letter case", "ignore_case = true");
    diagnosis.mends("note", "format", "{id}.json");
    assert!(diagnosis.text.contains("encoded slash  ok"), "{}", diagnosis.text);

    let kept =
        format!("encoded_slash = \"keep\"\n[[routes]]\npath = \"/docs/{{id}}.json\"\npolicy = \"optimistic\"\n{open}");
    let proxy = Proxy::start(&server(&kept, "ignore_case = true")).await;
    let diagnosis = Diagnosis::of(&[&format!("http://{}/docs/a", proxy.addr())]).await;
    diagnosis.mends("note", "letter case", "unless the configuration has it");
    diagnosis.mends("note", "format", "unless the configuration has it");
    assert_eq!(backend.count("PUT", "*"), 0);
}

#[tokio::test]
async fn a_resource_that_does_not_exist_is_a_problem() {
    let backend = Backend::start().await;
    Diagnosis::of(&[&url(backend.addr())]).await.checked(&["read"], &[("read", "problem")]);
}

#[tokio::test]
async fn wrong_words_end_with_64_and_a_server_that_is_not_there_with_1() {
    let nobody = url(ports::free());
    let nobody = nobody.as_str();
    for (arguments, code) in [
        (&["ftp://a.example/"][..], 64),
        (&[nobody, "-H", "If-Match: *"][..], 64),
        (&[nobody, "-H", "Authorization"][..], 64),
        (&[nobody, "--timeout", "soon"][..], 64),
        (&[nobody][..], 1),
    ] {
        let diagnosis = Diagnosis::of(arguments).await;
        assert_eq!(diagnosis.code, Some(code), "{arguments:?}: {}", diagnosis.text);
    }
}
