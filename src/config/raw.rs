//! The file as a whole.

use std::collections::BTreeMap;

use super::{
    admin::AdminKeys, route::RouteKeys, server::ServerKeys, store::StoreKeys, table::section, telemetry::TelemetryKeys,
    upstream::UpstreamKeys,
};

pub(super) use super::written::{Text, Texts, Written};

section!(keys File {
    /// The listeners, and the limits for all requests together.
    server: ServerKeys;
    /// The listener for operators.
    admin: AdminKeys, restart;
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
