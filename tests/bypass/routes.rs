//! The configuration that the operator of these servers would write: one host for each of them.

use crate::{backends::Backend, requests::Kind};

/// The host of a server. It has no dot: moto would take what stands before one for a bucket.
pub fn host(backend: &Backend) -> String {
    backend.name.to_lowercase()
}

/// One proxy before all of them.
pub fn configuration(backends: &[Backend]) -> String {
    let tables: String = backends.iter().map(of_backend).collect();
    format!(
        "[server]\n{{listen}}\nspool_dir = \"{{spool}}\"\nthreads = 2\n[telemetry]\naccess_log = false\n\
         [defaults]\npolicy = \"pessimistic\"\n[defaults.lease]\nguards = [\"read\", \"write\"]\ninfinite = true\n{tables}"
    )
}

fn of_backend(backend: &Backend) -> String {
    let (name, host) = (backend.name, host(backend));
    // The application of Express finds documents without regard to case.
    let options = if name == "Express" { "ignore_case = true\n" } else { "" };
    let upstream = format!("[upstreams.{name}]\nservers = [\"{}\"]\n{options}", backend.addr);
    let route = |part: &str, path: &str, lines: &str| {
        format!(
            "[[routes]]\nname = \"{name}-{part}\"\nhost = \"{host}\"\npath = \"{path}\"\nupstream = \"{name}\"\n{lines}"
        )
    };
    let routes = match backend.kind {
        Kind::Documents => [
            route("documents", "/docs/{id}", "key = \"/docs/{id}\"\n"),
            route("queries", "/document", "key = \"/docs/{query.doc_id}\"\n"),
            route("names", "/docs", "writes_to = \"/docs/{json./sku}\"\n"),
        ]
        .concat(),
        Kind::Files => route("files", "/{*rest}", ""),
        Kind::Objects => route(
            "objects",
            "/{*rest}",
            "path_params = \"keep\"\netag = \"upstream\"\ndialect = \"s3\"\nrequire = \"never\"\nappend_methods = []\n\
             probe_auth = \"sigv4\"\nprobe_region = \"us-east-1\"\nlease.auth = \"none\"\n",
        ),
    };
    format!("{upstream}{routes}")
}
