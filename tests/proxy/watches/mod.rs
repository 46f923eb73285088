//! Watches: the states, changes and leases that a client learns of, and the clients that learn of them.

mod pages;
mod rights;
mod streams;
mod waits;

use crate::support::{
    backend::Backend,
    leases::leasing_versions,
    proxy::{Proxy, Setup},
};

const DOC: &str = "/doc";

/// A route whose resources can be watched.
fn setup(backend: &Backend) -> Setup {
    backend.put(DOC, "one");
    leasing_versions(backend).route("watch = true\nlease.auth = \"none\"")
}

async fn start(configure: impl FnOnce(Setup) -> Setup) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    let proxy = configure(setup(&backend)).start().await;
    (backend, proxy)
}
