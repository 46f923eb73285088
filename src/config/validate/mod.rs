//! Turns the raw mirror into the [`Config`], and reports every rule that the file breaks.
//!
//! A failed check reports its problem and continues with the default, so that one run finds all problems. A
//! configuration built from a file with problems is discarded at the end.

pub(super) mod addresses;
mod admin;
mod clients;
mod delete_pending;
mod dialect_keys;
mod guard;
mod itself;
mod keys;
mod members;
mod one_key;
mod overlap;
mod postgres;
mod prefixes;
mod routes;
mod server;
mod shared;
mod store;
mod tags;
mod tls;
mod touches;
mod unseen;
mod upstreams;
mod watch;
mod writes_to;

use super::{
    Config, Loaded, Server, Telemetry, check,
    problem::{Problem, Problems, Source},
    raw::File,
    secrets,
    section::{Layers, WrittenKeys},
    table::Section as _,
};
use check::Check;

/// Checks the parts of a file that could be read. `problems` are the problems found while reading it.
pub(super) fn validate(
    source: Source<'_>,
    file: &File,
    written: &WrittenKeys,
    problems: Vec<Problem>,
) -> Result<Loaded, Problems> {
    let mut check = Check { source, written, problems, warnings: Vec::new() };
    let server = Server::read(&mut check, "", Layers::only(&file.server), ());
    server::rules(&mut check, &file.server, &server);
    let admin = admin::admin(&mut check, &file.admin);
    let store = store::store(&mut check, &file.store);
    let telemetry = Telemetry::read(&mut check, "", Layers::only(&file.telemetry), ());
    let upstreams = upstreams::upstreams(&mut check, &file.upstreams);
    itself::refuse(&mut check, &file.upstreams, &server.listen);
    let routes = routes::routes(&mut check, file, &upstreams);
    let table = overlap::table(&routes);
    overlap::refuse(&mut check, &routes, &table);
    overlap::refuse_taken_prefixes(&mut check, &routes, &table);
    touches::refuse_unguarded(&mut check, &routes);
    writes_to::check(&mut check, &routes);
    members::check(&mut check, &routes);
    store::refuse_weak(&mut check, &store, &routes);
    store::warn_of_lost_locks(&mut check, &store, &routes);
    if !check.problems.is_empty() {
        return Err(Problems::new(check.problems));
    }
    let mut warnings = overlap::warnings(source, &routes);
    warnings.append(&mut unseen::warnings(source, &routes));
    warnings.append(&mut check.warnings);
    warnings.sort();
    // A default counts for each of its routes.
    warnings.dedup();
    let routes = overlap::beside_others(routes);
    Ok(Loaded { config: Config { server, admin, store, telemetry, routes }, warnings })
}
