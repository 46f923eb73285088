//! Writes whose body names their method (`_method`): it is received first, and then the request is judged by that method
//! too.

use std::{
    io::{BufReader, Read},
    sync::Arc,
};

use http::{HeaderMap, Method};

use super::Writes;
use crate::{
    body::{Body, Client},
    core::{
        http::readings::{
            body_method::{may_name_method, named_method},
            method::MethodReadings,
            named_method::NamedMethod,
        },
        policy::{GuardRules, MethodClass, MethodOverride},
        refusal::{Code, Refusal},
    },
    guard::{Halt, received_client::ReceivedClient, refusals},
    routing::GuardedRequest,
};

/// True if the body of a POST may name its method. A backend behind a closed list of operations has no framework that
/// looks for it.
pub(crate) fn is_method_in_body(client: &mut dyn Client, guarded: &GuardedRequest) -> bool {
    !guarded.is_lease()
        && guarded.route.guard.as_ref().is_some_and(|rules| !rules.quirks.is_closed_list)
        && may_name_method(&client.head().headers)
        && client.has_content()
}

impl Writes {
    /// Receives the body of a request. Returns the request with the method that its body names among its readings.
    pub(crate) async fn name_method_by_body<'a>(
        &self,
        client: &'a mut dyn Client,
        guarded: &GuardedRequest,
        rules: &GuardRules,
    ) -> Result<(ReceivedClient<'a>, GuardedRequest), Halt> {
        let (head, has_content) = (Arc::clone(client.head()), client.has_content());
        let body = self.bodies.receive(client).await.map_err(refusals::of_body)?;
        let methods = match method_in(&head.headers, &body).await? {
            NamedMethod::None => guarded.methods.clone(),
            NamedMethod::One(method) if rules.method_override == MethodOverride::Judge => {
                judged_with(rules, &guarded.methods, method)?
            }
            NamedMethod::One(_) | NamedMethod::Unclear => return Err(named_in_body().into()),
        };
        Ok((
            ReceivedClient { has_content, client, head, body: Some(body) },
            GuardedRequest { methods, ..guarded.clone() },
        ))
    }
}

/// Returns the method that a body with these fields names.
pub(super) async fn method_in(headers: &HeaderMap, body: &Body) -> Result<NamedMethod, Halt> {
    let headers = headers.clone();
    let named = body.read_with(move |text| named_method(&headers, BufReader::new(text).bytes())).await;
    named.and_then(|named| named).map_err(|error| refusals::of_spool(&error))
}

fn judged_with(rules: &GuardRules, methods: &MethodReadings, named: Method) -> Result<MethodReadings, Refusal> {
    let methods = methods.naming(rules, named);
    match rules.class_of(&methods.judged) {
        MethodClass::NotAllowed | MethodClass::TwoResources => Err(named_in_body()),
        _ => Ok(methods),
    }
}

/// The refusal of a request whose body names a method that is not taken from there.
pub(super) fn named_in_body() -> Refusal {
    let detail = "send the request with the method itself, or name it in the query: the body names one in _method, or \
                  may do so, and this route does not take it from there";
    Refusal::new(Code::MethodOverride, detail)
}
