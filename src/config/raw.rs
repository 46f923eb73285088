//! The file as a whole, and its table `[admin]`, of which no key means anything without another.

use std::collections::BTreeMap;

use super::{
    route::RouteKeys, server::ServerKeys, store::StoreKeys, table::section, telemetry::TelemetryKeys,
    upstream::UpstreamKeys,
};

pub(super) use super::written::{Text, Texts, Written};

section!(keys File {
    /// The listeners, and the limits for all requests together.
    server: ServerKeys;
    /// The listener for operators.
    admin: Admin, restart;
    /// The records, which hold the state of each resource.
    store: StoreKeys, restart;
    /// Logs, metrics and traces.
    telemetry: TelemetryKeys, restart;
    /// The servers behind the proxy, one table for each backend.
    upstreams: BTreeMap<Text, Written<UpstreamKeys>>;
    /// Values for every route that does not set the key itself.
    defaults: RouteKeys;
    /// Which requests go to which upstream, and under which rules, one table for each route.
    routes: Vec<Written<RouteKeys>>;
});

section!(keys Admin {
    /// The address for operators.
    listen: Option<Text>;
    /// Names of the listener beside those of this machine and its address, in lower case.
    hosts: Option<Texts>;
    /// The file of the token that requests must carry.
    token_file: Option<Text>;
    /// The variable of the environment with that token.
    token_env: Option<Text>;
});
