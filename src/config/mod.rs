//! The configuration: turns a file or command-line options into one validated [`Config`] (DESIGN, section 9).
//!
//! The rest of the program sees only these types. `raw` holds the shape of the file, and `validate` holds every rule
//! that a file can break.

mod admin;
mod change;
mod check;
mod client_tls;
mod environment;
mod file;
mod kinds;
mod lease;
mod lease_rules;
mod listen;
mod problem;
mod raw;
mod read;
#[cfg(test)]
mod reference;
mod route;
mod route_kinds;
mod schema;
mod secrets;
mod section;
mod server;
mod server_tls;
mod shown;
mod start;
mod store;
mod table;
mod telemetry;
mod tls_files;
mod trusted_proxies;
mod units;
mod upstream;
mod upstream_servers;
mod upstream_tls;
mod validate;
mod words;
mod written;

use std::{env, sync::Arc};

pub use admin::Admin;
pub use change::{ReloadPlan, plan};
pub use client_tls::Tls;
use environment::Lookup;
pub use file::{load, load_again};
pub(crate) use lease::DEFAULT_PREFIX as DEFAULT_LEASE_PREFIX;
pub use listen::Listen;
use problem::Source;
pub use problem::{Problem, Problems};
pub use schema::{keys, schema};
pub use section::Key;
pub use server::Server;
pub use start::{GuardedBy, from_upstream};
pub use store::{Etcd, Login, POSTGRES_USER, Postgres, Redis, StoreKind, StoreSettings};
pub use telemetry::{LogForm, LogLevel, Otlp, OtlpProtocol, Signal, Telemetry};
pub use trusted_proxies::TrustedProxies;
pub use units::{show_duration, show_size};
pub use upstream::{Balance, Forwarded, HashBy, HealthCheck, HealthProbe, HostHeader, Queue, Upstream};
pub use words::{Word, guard_words};

use crate::core::{
    http::{path_mapping::PathMapping, request_target::KeptInNames},
    policy::{GuardRules, Policy},
    resource::KeyTemplate,
    route::{HostPattern, MembersTemplate, PathPattern, WritesTo},
};

/// A valid configuration with its warnings.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Settings that are allowed but rarely meant, in the order of the text.
    pub warnings: Vec<Problem>,
}

/// Reads and checks a text, and reports its problems under `name`. The error holds every problem of the text. A value
/// can take variables from the environment of the process: `${NAME}`.
pub fn parse(name: &str, text: &str) -> Result<Loaded, Problems> {
    parse_with(name, text, &|variable| env::var(variable).ok())
}

fn parse_with(name: &str, text: &str, environment: Lookup<'_>) -> Result<Loaded, Problems> {
    let source = Source { name, text };
    let read::Reading { file, written, problems, replaced, of_variables } = read::read(source, environment);
    let checked = match file {
        Some(file) => validate::validate(source, &file, &written, problems),
        None => Err(Problems::new(problems)),
    };
    let shown = |problem: Problem| problem.hiding(source, &replaced);
    match checked {
        Ok(loaded) if of_variables.is_empty() => {
            Ok(Loaded { warnings: loaded.warnings.into_iter().filter_map(shown).collect(), ..loaded })
        }
        checked => {
            let others = checked.err().into_iter().flat_map(|problems| problems.0).filter_map(shown);
            Err(Problems::new(of_variables.into_iter().chain(others).collect()))
        }
    }
}

/// The checked content of a configuration file.
#[derive(Clone, Debug)]
pub struct Config {
    /// The `[server]` table.
    pub server: Server,
    /// The `[admin]` table, if there is an admin listener.
    pub admin: Option<Admin>,
    /// The `[store]` table.
    pub store: StoreSettings,
    /// The `[telemetry]` table.
    pub telemetry: Telemetry,
    /// The routes, each with its upstream, in the order of the file.
    pub routes: Vec<Arc<Route>>,
}

/// One `[[routes]]` table with `[defaults]` filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is another fact about the routes beside it")]
pub struct Route {
    /// The name in logs.
    pub name: String,
    /// The hosts that the route matches.
    pub host: HostPattern,
    /// The paths that the route matches.
    pub path: PathPattern,
    /// The upstream that receives the requests.
    pub upstream: Arc<Upstream>,
    /// The policy that the route enforces.
    pub policy: Policy,
    /// The rules of a guarded route; `None` under [`Policy::LastWriterWins`].
    pub guard: Option<Arc<GuardRules>>,
    /// The changes to paths on their way to the upstream.
    pub mapping: PathMapping,
    /// The paths that the upstream receives through this route.
    pub upstream_path: PathPattern,
    /// The template of the resource keys.
    pub key: KeyTemplate,
    /// The resource that the body of a write names (`writes_to`).
    pub writes_to: Option<WritesTo>,
    /// The resources that are members of this collection (`members`).
    pub members: Option<MembersTemplate>,
    /// The characters that the backend takes as ordinary parts of names (`path_params`, `encoded_slash`).
    pub kept: KeptInNames,
    /// True if a guarded route (this one included) that does not only observe sends to the same upstream. A target with
    /// two readings could then reach the resources of that route through this one.
    pub beside_guarded: bool,
    /// True if a route (this one included) that makes the same keys grants leases that keep readers away.
    pub reads_may_be_leased: bool,
    /// True if a DELETE may wait on a route (this one included) that makes the same keys (`lease.delete_pending`).
    pub deletes_may_be_pending: bool,
    /// True if a guarded route (this one included) of the same upstream has resources below those of this route.
    pub may_hold_members: bool,
    /// True if one request can change a collection of the upstream with all resources below it. Each of them then has
    /// to look for that ([`GuardRules::changes_trees`]).
    pub has_trees: bool,
}

impl Route {
    /// The rules that the route enforces; `None` if it has none, or only observes what they would refuse.
    pub fn enforced(&self) -> Option<&Arc<GuardRules>> {
        self.guard.as_ref().filter(|rules| !rules.observe)
    }

    /// True if the upstream may name resources otherwise than clients do: by other paths, or by another host.
    pub fn renames_resources(&self) -> bool {
        !self.mapping.is_identity() || self.upstream.host_header != HostHeader::Preserve
    }

    /// True if a request that takes this route could change a guarded resource.
    pub fn is_protected(&self) -> bool {
        self.beside_guarded || self.enforced().is_some()
    }
}
