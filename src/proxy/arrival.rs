//! A request at the door, before anything is done with it.

use http::HeaderName;

use super::target;
use crate::{
    core::{
        http::fields::{Underscores, is_second_spelling},
        refusal::Refusal,
    },
    downstream::{client, session::ClientSession},
    generation::Serving,
    routing::door::{self, Door, Head},
    upstream::{fields::FieldsOfHead as _, via::refuse_return},
};

/// A request at the door.
pub(super) struct Arrival {
    /// The decision of the door.
    pub(super) door: Door,
    /// The fault of the target as received, if it has one.
    origin_form: Result<(), Refusal>,
}

impl Arrival {
    /// Asks the door about the request of a session, whose target is then in origin-form.
    pub(super) fn at(serving: &Serving, session: &mut ClientSession) -> Self {
        let most = serving.config.server.max_target_bytes;
        let origin_form =
            target::check_length(session.request(), most).and_then(|()| target::to_origin_form(session.request_mut()));
        Self { door: ask(serving, session, &origin_form), origin_form }
    }

    /// Asks again, after the rules of the route have changed.
    pub(super) fn again(&mut self, serving: &Serving, session: &mut ClientSession) {
        self.door = ask(serving, session, &self.origin_form);
    }
}

/// Asks the door of a generation about a request.
fn ask(serving: &Serving, session: &mut ClientSession, origin_form: &Result<(), Refusal>) -> Door {
    if serving.config.server.underscores == Underscores::Drop {
        let is_dropped = |name: &HeaderName| name.as_str().contains('_') && !is_second_spelling(name);
        session.request_mut().remove_all(is_dropped);
    }
    let door = origin_form.clone().and_then(|()| decide(serving, session));
    door.unwrap_or_else(|refusal| Door::Refuse { refusal, route_index: None })
}

fn decide(serving: &Serving, session: &ClientSession) -> Result<Door, Refusal> {
    let request = session.request();
    refuse_return(&request.headers)?;
    let head = Head {
        method: &request.method,
        version: request.version,
        host: target::host(request)?,
        target: request.raw_path(),
        headers: &request.headers,
        client: client::address(session, &serving.config.server.trusted_proxies).into(),
    };
    Ok(door::decide(&serving.table, &head))
}
