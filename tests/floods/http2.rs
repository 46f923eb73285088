//! Floods that HTTP/2 alone knows: requests that are given up, frames that carry nothing, and windows that stay shut.

use std::time::Duration;

use tokio::{
    net::TcpListener,
    time::{Instant, sleep},
};

use crate::{
    arena::{Arena, Ceiling, HONEST_WAIT, times},
    frames::{
        CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, HEADERS, Http2, PING, PRIORITY, RST_STREAM,
        SETTINGS, WINDOW_UPDATE, fields, frame, initial_window,
    },
};

/// Writes that are given up as soon as they are sent: what was begun for them goes on, and no more is begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_are_given_up_end_their_connection() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let tables = format!(
        "[upstreams.silent]\nservers = [\"{}\"]\n\
         [[routes]]\nname = \"silent\"\npath = \"/silent/{{*rest}}\"\nupstream = \"silent\"\npolicy = \"optimistic\"\n",
        silent.local_addr().expect("its address"),
    );
    let arena = Arena::before("", |setup| setup, &tables, None).await;
    let connections = times(1, 10);
    // The requests in flight when a connection is cut off go on.
    let ceiling =
        Ceiling { resident_mib: 24 + 8 * connections, descriptors: 50 + 150 * connections, honest_wait: HONEST_WAIT };
    let flood = async {
        let mut told = Vec::new();
        for _ in 0..connections {
            let mut client = Http2::open(arena.addr(), &frame(SETTINGS, 0, 0, &[])).await;
            'flood: for batch in 0..60 {
                let streams = (20 * batch..20 * batch + 20).map(|number| 2 * number + 1);
                for stream in streams.clone() {
                    let post = fields("POST", "/silent/posts", &[("content-length", "4")]);
                    let head = frame(HEADERS, END_HEADERS, stream, &post);
                    if client.send(&[head, frame(DATA, END_STREAM, stream, b"post")].concat()).await.is_err() {
                        break 'flood;
                    }
                }
                // They are given up when they are in flight.
                sleep(Duration::from_millis(30)).await;
                for stream in streams {
                    let _over = client.send(&frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())).await;
                }
            }
            told.push(client.end().await);
        }
        told
    };
    let (told, _) = arena.flood("1,200 writes that are given up", ceiling, flood).await;
    assert!(told.iter().all(|told| told.goaway == Some(ENHANCE_YOUR_CALM)), "{told:?}");
}

/// Frames that carry nothing, of each kind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_that_carry_nothing_end_their_connection() {
    let arena = Arena::start("").await;
    let kinds: [(&str, Vec<u8>); 6] = [
        ("WINDOW_UPDATE", frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes())),
        ("PRIORITY", frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 16])),
        ("PING", frame(PING, 0, 0, &[0; 8])),
        ("SETTINGS", frame(SETTINGS, 0, 0, &[])),
        ("unknown", frame(0xbb, 0, 0, b"grease")),
        ("empty DATA", frame(DATA, 0, 1, b"")),
    ];
    for (name, one) in kinds {
        let ceiling = Ceiling { resident_mib: 16, descriptors: 100, honest_wait: HONEST_WAIT };
        let flood = async {
            let mut client = Http2::open(arena.addr(), &frame(SETTINGS, 0, 0, &[])).await;
            let put = fields("PUT", "/put", &[("if-none-match", "*")]);
            client.send(&frame(HEADERS, END_HEADERS, 1, &put)).await.expect("it is taken");
            let many = one.repeat(1_000);
            let mut sent = 0;
            while sent < times(200, 2_000) && client.send(&many).await.is_ok() {
                sent += 1;
            }
            client.end().await
        };
        let (told, cost) = arena.flood(&format!("{name} frames"), ceiling, flood).await;
        assert_eq!(told.goaway, Some(ENHANCE_YOUR_CALM), "{name}: {told:?}");
        assert!(cost.processor < Duration::from_secs(2), "{name}: {cost:?}");
    }
}

/// Answers that no client reads are held for a while and not for a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_that_stay_shut_end_their_connection() {
    const STREAMS: u32 = 60;
    let arena = Arena::start("").await;
    arena.backend.put("/large", "x".repeat(512 << 10));
    let connections = times(2, 10);
    let ceiling = Ceiling {
        resident_mib: 40 + 40 * connections,
        descriptors: 60 + 100 * connections,
        honest_wait: 2 * HONEST_WAIT,
    };
    let begun = Instant::now();
    let flood = async {
        let mut clients = Vec::new();
        for _ in 0..connections {
            let mut client = Http2::open(arena.addr(), &initial_window(0)).await;
            for number in 0..STREAMS {
                let get = fields("GET", "/large", &[]);
                let head = frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, &get);
                client.send(&head).await.expect("it is taken");
            }
            clients.push(client);
        }
        let mut told = Vec::new();
        for client in clients {
            told.push(client.end().await);
        }
        told
    };
    let (told, _) = arena.flood("windows that stay shut", ceiling, flood).await;
    assert!(told.iter().all(|told| told.goaway == Some(ENHANCE_YOUR_CALM)), "{told:?}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// A list of fields has the time of a head, whether its frames or their bytes are slow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_fields_that_do_not_end_end_their_connection() {
    let arena = Arena::start("header_timeout = \"1s\"").await;
    let get = fields("GET", "/warm", &[]);
    let whole = frame(HEADERS, END_HEADERS | END_STREAM, 1, &get);
    let cases = [
        ("no last frame", frame(HEADERS, END_STREAM, 1, &get)),
        ("an empty one after it", [frame(HEADERS, END_STREAM, 1, &get), frame(CONTINUATION, 0, 1, b"")].concat()),
        ("half a frame", whole[..whole.len() / 2].to_vec()),
        ("half the beginning of a frame", whole[..4].to_vec()),
    ];
    for (name, bytes) in cases {
        let mut client = Http2::open(arena.addr(), &frame(SETTINGS, 0, 0, &[])).await;
        client.send(&bytes).await.expect("it is taken");
        let begun = Instant::now();
        let told = client.end().await;
        assert_eq!((told.goaway, told.answers), (Some(ENHANCE_YOUR_CALM), 0), "{name}");
        assert!(begun.elapsed() < Duration::from_secs(8), "{name}: {:?}", begun.elapsed());
    }
}

/// Pings do not keep a connection whose request does not go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings_do_not_keep_a_body_open() {
    let lines = "body_timeout = \"1s\"\nkeepalive_timeout = \"1s\"";
    let open = "\n[[routes]]\nname = \"open\"\npath = \"/open/{*rest}\"\nupstream = \"backend\"\n\
                policy = \"last-writer-wins\"\n";
    let arena = Arena::before(lines, |setup| setup.upstream("timeout = \"1s\""), open, None).await;
    let held_open = async |path| {
        let mut client = Http2::open(arena.addr(), &frame(SETTINGS, 0, 0, &[])).await;
        let put = fields("PUT", path, &[("if-none-match", "*")]);
        client.send(&frame(HEADERS, END_HEADERS, 1, &put)).await.expect("it is taken");
        let begun = Instant::now();
        while !client.is_over() && begun.elapsed() < Duration::from_secs(60) {
            let _ = client.send(&frame(PING, 0, 0, &[0; 8])).await;
            sleep(Duration::from_millis(50)).await;
        }
        begun.elapsed()
    };
    let (guarded, unguarded) = tokio::join!(held_open("/guarded"), held_open("/open/doc"));
    // The time of the body, that in which the answer is read, and that of an idle connection.
    let most = Duration::from_secs(12);
    assert!(guarded < most && unguarded < most, "{guarded:?}, {unguarded:?}");
}

/// A client gains no requests by the protocol that it speaks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_has_no_more_requests_than_connections() {
    let arena =
        Arena::start("max_connections_per_client = 50\nbody_timeout = \"1s\"\nkeepalive_timeout = \"1s\"").await;
    let mut client = Http2::open(arena.addr(), &frame(SETTINGS, 0, 0, &[])).await;
    for number in 0..100 {
        let put = fields("PUT", &format!("/put/{number}"), &[("if-none-match", "*")]);
        client.send(&frame(HEADERS, END_HEADERS, 2 * number + 1, &put)).await.expect("it is taken");
    }
    let told = client.end().await;
    assert_eq!((told.answers, told.resets >= 50), (50, true), "fifty were too late, and fifty were refused: {told:?}");
}
