//! The configuration that is served, its routes, and its servers.

use axum::{Json, extract::State, response::IntoResponse as _};
use serde_json::json;

use super::{AdminAnswer, AdminState, overview};

/// Shows the whole configuration.
pub(super) async fn config(State(admin): AdminState) -> AdminAnswer {
    Ok(Json(admin.config().shown()).into_response())
}

/// Shows only the routes, in the order of the file.
pub(super) async fn routes(State(admin): AdminState) -> AdminAnswer {
    let config = admin.config();
    let routes = config.routes.iter().map(|route| route.shown()).collect::<Vec<_>>();
    Ok(Json(json!({ "routes": routes })).into_response())
}

/// Shows the servers of all upstreams and their health.
pub(super) async fn servers(State(admin): AdminState) -> AdminAnswer {
    Ok(Json(overview::servers(&admin)).into_response())
}
