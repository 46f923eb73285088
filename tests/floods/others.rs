//! The same floods against nginx and haproxy with their defaults (`make floods`, docs/floods.md): no ceilings, a table.
//!
//! ```text
//! servers      what floods are let loose on
//! connections  heads that do not end, and connections that say nothing
//! http2        floods that HTTP/2 alone knows
//! writes       long paths, and bodies that do not come or do not fit
//! ```

use std::{net::SocketAddr, time::Duration};

use tokio::time::sleep;

use crate::{
    arena::{ALONE, times},
    downloads::{LARGE, LARGE_BYTES, begin, under_way},
    measure::Sampler,
    small_disk::SmallDisk,
    support::backend::Backend,
};

mod connections;
mod http2;
mod servers;
mod writes;

use servers::{Ground, Server};

/// How long most floods go on.
const TIME: Duration = Duration::from_secs(20);

/// The flood of bodies that find no room on the disk.
const FULL_DISK: usize = 11;
/// The last flood.
const LAST: usize = 13;

/// The result of a flood, in a few words.
type Outcome = String;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_take_the_same_floods() {
    if !times(false, true) {
        return;
    }
    let _alone = ALONE.lock().await;
    println!("| flood | server | memory | descriptors | processor | outcome |\n|---|---|---|---|---|---|");
    for flood in 0..=LAST {
        for name in ["ifmatch", "nginx", "haproxy"] {
            let disk = if flood == FULL_DISK { SmallDisk::mount(4) } else { None };
            if flood == FULL_DISK && disk.is_none() {
                continue;
            }
            let ground = Ground::new(disk).await;
            let Some(server) = ground.start(name).await else { continue };
            let sampler = Sampler::start(server.process);
            let (name, outcome) = run(flood, &server, &ground).await;
            let cost = sampler.end().await;
            println!(
                "| {name} | {} | {:.1} MiB | {} | {:.2} s | {outcome} |",
                server.name,
                cost.resident_kib as f64 / 1024.0,
                cost.descriptors,
                cost.processor.as_secs_f64(),
            );
        }
    }
}

async fn run(flood: usize, server: &Server, ground: &Ground) -> (&'static str, Outcome) {
    let Server { http1, http2, .. } = *server;
    match flood {
        0 => ("300 heads, a byte each 100 ms, for 20 s", connections::trickled(http1).await),
        1 => ("300 heads of 1 MB", connections::huge(http1).await),
        2 => ("a head of 1 MB in pieces of 64 bytes", connections::pieces(http1).await),
        3 => ("2,000 idle connections of one client", connections::idle(http1).await),
        4 => ("1,200 requests that are given up, silent backend", http2::given_up(http2).await),
        5 => ("200,000 WINDOW_UPDATE frames", http2::updates(http2).await),
        6 => ("120 answers of 512 KiB, windows shut, for 20 s", http2::shut(http2).await),
        7 => ("5,000 PUTs with paths of 60 KB", writes::paths(http1, 60_000).await),
        8 => ("5,000 PUTs with paths of 8 KB", writes::paths(http1, 8_000).await),
        9 => ("4,000 POSTs with paths of 8 KB that the backend refuses", writes::refused(http1).await),
        10 => ("338 POSTs that declare 1 MB and send 4 bytes, for 5 s", writes::announced(http1).await),
        FULL_DISK => {
            let outcome = writes::spooled(http1).await;
            let spools = if server.name == "haproxy" { ", nothing is spooled" } else { "" };
            ("200 PUTs of 600 KB, the disk of the spool full", outcome + spools)
        }
        12 => ("1,200 uploads of two clients that stall after a byte", writes::stalled(http1, &ground.backend).await),
        _ => ("100 downloads of 8 MiB by two clients that read nothing, for 5 s", unread(http1, &ground.backend).await),
    }
}

/// Downloads that no server may hold back for long: how many connections of the backend they hold.
async fn unread(addr: SocketAddr, backend: &Backend) -> Outcome {
    backend.put(LARGE, "x".repeat(LARGE_BYTES));
    let before = backend.open_connections();
    let downloads = begin(addr, 100).await;
    let let_in = under_way(downloads).await;
    sleep(Duration::from_secs(5)).await;
    let held = backend.open_connections().saturating_sub(before);
    format!("{} are answered, with {held} connections to the backend after it", let_in.len())
}

/// The outcome that most of them had.
fn most(mut outcomes: Vec<Outcome>) -> Outcome {
    outcomes.sort();
    outcomes.chunk_by(PartialEq::eq).max_by_key(|chunk| chunk.len()).map_or_else(String::new, |chunk| chunk[0].clone())
}
