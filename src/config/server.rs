//! The `[server]` table.

use std::{ops::RangeInclusive, path::PathBuf, thread, time::Duration};

use super::{
    check::Check,
    kinds::{Count, Flag, OneOf, Path, Size, Table, Time},
    listen::{Listen, ListenAddresses},
    table::{ValueKind, section},
    trusted_proxies::{Peers, TrustedProxies},
    units::{GIB, KIB, MIB, TIB, ZERO, hours, seconds},
    written::Number,
};
use crate::{core::http::fields::Underscores, tls::ServerTls};

section! {
    /// The `[server]` table: the listeners and the limits for all requests.
    #[derive(Clone, Debug)]
    pub struct Server of ServerKeys {
        /// The addresses for clients.
        listen: Vec<Listen> = ListenAddresses(()), restart;
        /// Worker threads; never 0.
        threads: usize = Threads(0) in 0..=1024, restart;
        /// The bytes of one request body that are kept in memory; the rest is spooled.
        max_body_memory_bytes["max_body_memory"]: usize = Size(MIB) in 0..=GIB;
        /// The bytes of all request bodies together that are kept in memory.
        max_body_memory_total_bytes["max_body_memory_total"]: usize = Size(256 * MIB) in MIB..=TIB, restart;
        /// The largest request body of a guarded write, in bytes.
        max_body_size_bytes["max_body_size"]: u64 = Size(GIB) in 0..=TIB;
        /// The bytes of all spool files together.
        max_spool_size_bytes["max_spool_size"]: u64 = Size(10 * GIB) in 0..=1024 * TIB, restart;
        /// The time limit for receiving the body of a guarded write.
        body_timeout: Duration = Time(seconds(60)) in seconds(1)..=hours(24);
        /// The directory of the spool files.
        spool_dir: PathBuf = Path("/var/tmp", "write \"/var/tmp\", or another directory on a disk");
        /// The largest number of uploads in blocks. The maximum keeps the reserve of descriptors small: each upload has
        /// an open file.
        max_staged_uploads: usize = Count(256) in 8..=4_096, restart;
        /// The largest number of blocks in one upload; at most Azure's limit for committed blocks.
        max_staged_blocks: usize = Count(10_000) in 1..=50_000;
        /// The time for which blocks of an upload wait for the list that joins them; at most the time for which Azure
        /// keeps blocks.
        staged_block_ttl: Duration = Time(hours(1)) in seconds(1)..=hours(24 * 7);
        /// The longest request target, in bytes.
        max_target_bytes["max_target_size"]: usize = Size(8 * KIB) in 256..=MIB;
        /// The largest number of writes that wait for a claim, over all resources.
        max_claim_waiters: usize = Count(10_000) in 0..=10_000_000, restart;
        /// The proxies in front of this one that it trusts.
        trusted_proxies: TrustedProxies = Peers(());
        /// The balancers that name the client of each connection in a header of the PROXY protocol.
        proxy_protocol: TrustedProxies = Peers(());
        /// The treatment of fields with an underscore in their name.
        underscores: Underscores = OneOf(Underscores::Keep);
        /// True if the answers of guarded routes tell their clients what took time.
        server_timing: bool = Flag(false);
        /// The time after which an idle client connection is closed.
        keepalive_timeout: Duration = Time(seconds(60)) in seconds(1)..=hours(24), restart;
        /// The time limit for receiving a request head, from its first byte on.
        header_timeout: Duration = Time(seconds(15)) in seconds(1)..=hours(1), restart;
        /// The largest request head, in bytes. The maximum stays below pingora's own limit, because pingora would reject
        /// a larger head with a less helpful answer.
        max_header_bytes["max_header_size"]: usize = Size(32 * KIB) in KIB..=MIB - KIB, restart;
        /// The bytes of all request heads together, counting only what a head has above 4 KiB.
        max_header_memory_bytes["max_header_memory_total"]: usize = Size(64 * MIB) in MIB..=TIB, restart;
        /// The largest number of connections of all clients together.
        max_connections: usize = Count(10_000) in 1..=1_000_000, restart;
        /// The largest number of connections from one address.
        max_connections_per_client: usize = Count(1_000) in 1..=1_000_000, restart;
        /// The largest number of resources that all clients together watch. By default, half of the connections are left
        /// for other requests.
        max_watches: usize = Count(max_connections / 2) in 0..=1_000_000;
        /// The largest number of resources that the clients at one address watch.
        max_watches_per_client: usize = Count(100) in 1..=1_000_000;
        /// The time limit for requests in flight after SIGTERM, and for writes that a reload waits for.
        shutdown_timeout: Duration = Time(seconds(10)) in ZERO..=hours(1);
        /// The socket on which `ifmatch reload` requests a reload.
        control_socket: Option<PathBuf> = Path("write \"/run/ifmatch/control.sock\""), restart;
        /// True if the process loads its file again if the file changes.
        watch: bool = Flag(false);
        /// The TLS settings of the listeners that speak TLS.
        tls: ServerTls = Table(());
    }
}

/// A number of threads; 0 stands for one per core.
pub(super) struct Threads;

impl ValueKind<usize> for Threads {
    type Written = Option<Number>;
    type Terms = (usize, RangeInclusive<usize>);

    fn read(check: &mut Check<'_>, key: &str, written: Option<&Number>, terms: Self::Terms) -> usize {
        match <Count as ValueKind<usize>>::read(check, key, written, terms) {
            0 => thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        }
    }
}
