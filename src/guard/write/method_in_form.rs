//! Writes whose form names their method (`_method`): the body is received first, and then the request is judged by that
//! method too.

use std::io::{BufReader, Read};

use http::Method;

use super::Writes;
use crate::{
    body::Client,
    core::{
        http::readings::{
            form::{NamedMethod, may_be_form, named_method},
            method::MethodReadings,
        },
        policy::{GuardRules, MethodClass, MethodOverride},
        refusal::{Code, Refusal},
    },
    guard::{Halt, received_client::ReceivedClient, refusals},
    routing::GuardedRequest,
};

/// True if the body of a request may name its method. Frameworks look for it in the form of a POST.
pub(crate) fn may_name_method(client: &mut dyn Client, guarded: &GuardedRequest) -> bool {
    !guarded.is_lease()
        && guarded.methods.may_be(&[Method::POST])
        && may_be_form(&client.head().headers)
        && client.has_content()
}

impl Writes {
    /// Receives the body of a request. Returns the request with the method that its form names among its readings.
    pub(crate) async fn name_method_by_form<'a>(
        &self,
        client: &'a mut dyn Client,
        guarded: &GuardedRequest,
        rules: &GuardRules,
    ) -> Result<(ReceivedClient<'a>, GuardedRequest), Halt> {
        let (head, has_content) = (client.head().clone(), client.has_content());
        let body = self.bodies.receive(client).await.map_err(refusals::of_body)?;
        let named = body.read_with(|text| named_method(BufReader::new(text).bytes())).await.and_then(|named| named);
        let methods = match named.map_err(|error| refusals::of_spool(&error))? {
            NamedMethod::None => guarded.methods.clone(),
            NamedMethod::One(method) if rules.method_override == MethodOverride::Judge => {
                judged_with(rules, &guarded.methods, method)?
            }
            NamedMethod::One(_) | NamedMethod::Unclear => return Err(named_in_form().into()),
        };
        Ok((
            ReceivedClient { has_content, client, head, body: Some(body) },
            GuardedRequest { methods, ..guarded.clone() },
        ))
    }
}

fn judged_with(rules: &GuardRules, methods: &MethodReadings, named: Method) -> Result<MethodReadings, Refusal> {
    let methods = methods.naming(rules, named);
    match rules.class_of(&methods.judged) {
        MethodClass::NotAllowed | MethodClass::TwoResources => Err(named_in_form()),
        _ => Ok(methods),
    }
}

fn named_in_form() -> Refusal {
    let detail = "send the request with the method itself, or name it in the query: the form names one in _method, which \
                  this route does not take";
    Refusal::new(Code::MethodOverride, detail)
}
