//! The content of a console: all parts of the state of this process at one look.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    AdminListener,
    answer::joined,
    console, doubts,
    health::StoreCheck,
    leases::{self, LeaseFilter},
    parts::StatePart,
    refusals, timeline,
};
use crate::core::resource::ResourceKey;

/// The number of leases that a console shows.
const LEASES_MAX: usize = 200;
/// The number of refusals that a console shows.
const REFUSALS_MAX: usize = 100;
/// The number of doubts that a console shows.
const DOUBTS_MAX: usize = 100;

/// The wishes of one console beside the parts that all consoles show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Interest {
    /// The beginning of the keys of the leases.
    #[serde(default)]
    pub(super) prefix: String,
    /// The resource whose timeline is shown.
    pub(super) key: Option<String>,
}

/// Looks at everything that a console with this interest shows. A part that cannot be read now is left out: the console
/// goes on showing what it knows, and why the store does not answer.
pub(super) async fn look(admin: &AdminListener, interest: &Interest) -> Vec<StatePart> {
    let (state, leases, doubts, timeline) =
        tokio::join!(state(admin), leases(admin, &interest.prefix), doubts(admin), timeline(admin, interest));
    let mut parts = vec![
        state,
        StatePart::new("servers", &servers(admin), 0),
        StatePart::new("routes", &console::routes(admin, false), 0),
        StatePart::new("hot", &console::hot(admin), 0),
        history(admin),
        StatePart::new("refusals", &refusals(admin), 0),
    ];
    parts.extend([leases, doubts, timeline].into_iter().flatten());
    parts
}

/// The process and its store.
async fn state(admin: &AdminListener) -> StatePart {
    let found = StoreCheck::within_patience(admin).await;
    let is_ready = !admin.is_draining() && admin.reads_pass(&found);
    let document = admin.readiness(is_ready, &found);
    let document = joined(document, console::process(admin));
    StatePart::new("state", &document, 0)
}

/// The servers of all upstreams.
pub(super) fn servers(admin: &AdminListener) -> Value {
    let states = admin.guards().upstreams().states();
    let servers = states.iter().map(|server| {
        json!({
            "upstream": server.upstream,
            "server": server.server,
            "state": if server.is_down { "down" } else if server.comes_last { "unreachable" } else { "up" },
            "checked": server.is_checked,
            "exchanges": server.in_use,
            "waiting": server.waiting,
        })
    });
    json!({ "servers": servers.collect::<Vec<_>>() })
}

/// The minutes of the last hour. The document changes with each minute.
fn history(admin: &AdminListener) -> StatePart {
    let (ended, document) = console::minutes(admin);
    StatePart::new("history", &document, ended)
}

fn refusals(admin: &AdminListener) -> Value {
    let document = refusals::last(admin, None, REFUSALS_MAX);
    joined(document, refusals::groups())
}

async fn leases(admin: &AdminListener, prefix: &str) -> Option<StatePart> {
    let filter = LeaseFilter::held(prefix);
    let found = leases::sweep_leases(admin, &filter, None, LEASES_MAX).await.ok()?;
    let ends: Vec<_> = found.found.iter().map(|row| row.lease.ends_at).collect();
    let document = json!({ "leases": found.found, "has_more": found.cursor.is_some() });
    Some(StatePart::new("leases", &document, ends))
}

async fn doubts(admin: &AdminListener) -> Option<StatePart> {
    let swept = doubts::sweep_doubts(admin, None, DOUBTS_MAX).await.ok()?;
    let document = json!({ "doubts": swept.found, "has_more": swept.cursor.is_some() });
    Some(StatePart::new("doubts", &document, 0))
}

/// The timeline of one resource, if the console shows one.
async fn timeline(admin: &AdminListener, interest: &Interest) -> Option<StatePart> {
    let key = ResourceKey::from_text(interest.key.as_deref()?);
    let (document, ends) = timeline::timeline(admin, &key).await.ok()?;
    Some(StatePart::new("timeline", &document, ends))
}

impl LeaseFilter {
    /// Returns the filter of the leases that are held, under keys with this beginning.
    fn held(prefix: &str) -> Self {
        use crate::core::lease::LeaseState::{Breaking, Leased};
        Self { prefix: prefix.to_owned(), states: vec![Leased, Breaking], holder: None }
    }
}
