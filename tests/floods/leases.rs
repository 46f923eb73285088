//! A client that takes every lease that it can get.

use std::collections::BTreeMap;

use crate::{
    arena::{Arena, Ceiling, HONEST_WAIT, times},
    requests::{request, requests},
};

/// A second route, with leases of what need not exist.
pub const LEASED: &str = "\n[[routes]]\nname = \"leased\"\npath = \"/leased/{*rest}\"\nupstream = \"backend\"\n\
     policy = \"pessimistic\"\n[routes.lease]\nauth = \"none\"\nabsent = \"allow\"\ninfinite = true\n";

/// Other credentials with each request: a backend that lets all clients in does not look at them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_has_so_many_leases_whatever_its_credentials() {
    const MAX_PER_ADDRESS: usize = 1_000;
    let arena = Arena::before("", |setup| setup, LEASED, None).await;
    let count = times(1_500, 20_000);
    let ceiling = Ceiling { resident_mib: 24, descriptors: 60, honest_wait: HONEST_WAIT };
    let flood = requests(arena.addr(), count, |number| {
        let fields = format!("Lease-Duration: infinite\r\nAuthorization: made up {number}\r\n");
        request("POST", &format!("/.leases/leased/{number}"), &fields, "")
    });
    let (answers, _) = arena.flood("leases with other credentials each", ceiling, flood).await;
    assert_eq!(answers, BTreeMap::from([(201, MAX_PER_ADDRESS), (429, count - MAX_PER_ADDRESS)]));
}
