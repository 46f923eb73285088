//! The configuration that is served, and its routes.

use axum::{Json, extract::State, response::IntoResponse as _};
use serde_json::json;

use super::{AdminAnswer, AdminState};

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
