//! A list of objects to remove (`DeleteObjects`): one write of all its objects.
//!
//! # Design
//!
//! *Why is the list not cut into requests of its own?* Its client has signed it, and ifmatch has no right to remove
//! anything. So the server gets the list as it came, or not at all.
//!
//! *Why is an object judged as if it were removed alone?* The door finds its route, and the rules there decide: the lease,
//! the tag that the list names, and what the route demands. So a list goes around none of them.
//!
//! *Why does the answer name each object?* Clients look for errors there, object by object. All of a list are still there
//! if one of them must stay, and each has its reason.

use std::sync::Arc;

use http::{Method, StatusCode, header};
use pingora::http::RequestHeader;

use super::Service;
use crate::{
    body::{Body, Client, ReceiveError},
    core::{
        policy::GuardRules,
        records::steps::Outcome,
        refusal::{Code, Refusal},
    },
    dialect::{
        Call, Intent,
        s3::{LIST_BYTES_MAX, NotRemoved, Removal, RemovalList, bucket_of, error_of, none_removed, outcomes},
    },
    guard::{Answer, Halt, ReceivedClient, Request, WrittenMembers, refusals},
    routing::GuardedRequest,
    service::own_request::call_of,
    upstream::fields::FieldsOfHead as _,
};

/// The objects of a list that was received.
struct ReceivedList(RemovalList);

impl WrittenMembers for ReceivedList {
    fn refused(&self, refused: Vec<(usize, Halt)>) -> Result<Answer, Halt> {
        let removals = &self.0.removals;
        let mut reasons: Vec<Option<NotRemoved>> = vec![None; removals.len()];
        let (mut named, mut told) = (None, None);
        for (number, halt) in refused {
            if let Halt::Refused(refusal) = &halt {
                told.get_or_insert_with(|| refusal.clone());
            }
            let (Some(reason), Some(removal)) = (reasons.get_mut(number), removals.get(number)) else { continue };
            *reason = Some(reason_of(halt)?);
            named.get_or_insert(removal);
        }
        let kept = named.map_or_else(String::new, |removal| format!(", such as {:?}", removal.key));
        let objects = removals.iter().zip(reasons).map(|(removal, reason)| {
            let beside = || NotRemoved {
                code: "OperationAborted",
                message: format!("a list is deleted as a whole: leave out the objects that cannot be{kept}"),
            };
            (removal, reason.unwrap_or_else(beside))
        });
        let answer = none_removed(&objects.collect::<Vec<_>>());
        Ok(match told {
            // For an operator the list is refused for the first of its reasons.
            Some(refusal) => Answer::told(refusal, answer),
            None => Answer::local(answer),
        })
    }

    fn outcomes(&self, status: StatusCode, body: Option<&[u8]>) -> Vec<Outcome> {
        outcomes(&self.0, status, body)
    }
}

/// The reason why an object is not removed, by what its own removal would be answered with.
fn reason_of(halt: Halt) -> Result<NotRemoved, Halt> {
    match halt {
        Halt::Refused(refusal) => {
            let (_, code) = error_of(&refusal);
            Ok(NotRemoved { code, message: refusal.detail.into_owned() })
        }
        Halt::Denied(relayed) => {
            let status = relayed.head.status;
            let code = match status.as_u16() {
                404 => "NoSuchKey",
                401 | 403 => "AccessDenied",
                _ => "InternalError",
            };
            Ok(NotRemoved { code, message: format!("the server has answered {status} to a look at the object") })
        }
        Halt::Broken(error) => Err(Halt::Broken(error)),
    }
}

impl Service<'_> {
    /// Removes the objects of a list, all or none.
    pub(super) async fn remove_listed(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
        (rules, call): (&Arc<GuardRules>, Call),
    ) -> Result<Answer, Halt> {
        let request = self.guard.request(client, guarded, rules, call)?;
        let bucket = bucket_of(request.head.raw_path()).ok_or_else(no_bucket)?;
        let body = self.guard.bodies().receive(client).await.map_err(refusals::of_body)?;
        let list = ReceivedList(read(&body, rules).await?);
        let (mut removals, mut refused) = (Vec::new(), Vec::new());
        for (number, removal) in list.0.removals.iter().enumerate() {
            match self.removal(client, (guarded, bucket), removal) {
                Ok(removal) => removals.push(removal),
                Err(halt) => refused.push((number, halt)),
            }
        }
        if refused.is_empty() {
            self.guard.write_several(client, (&request, &body), removals, &list).await
        } else {
            list.refused(refused)
        }
    }

    /// Returns the removal of one object as a request of its own, as its route reads it.
    fn removal(
        &self,
        client: &mut dyn Client,
        (list, bucket): (&GuardedRequest, &[u8]),
        removal: &Removal,
    ) -> Result<Request, Halt> {
        let head = head_of_removal(client.head(), removal)?;
        let guarded = self.guarded_here(&head, list, not_here)?;
        let (rules, call) = call_of(&head, &guarded)?;
        if call.intent != Intent::Write || !rules.also_changes.is_empty() {
            return Err(not_in_list().into());
        }
        let mut client = ReceivedClient::without_content(client, head);
        let removal = self.guard.request(&mut client, &guarded, rules, call)?;
        let name = removal.head.raw_path().strip_prefix(bucket).and_then(|name| name.strip_prefix(b"/"));
        if name.is_some() { Ok(removal) } else { Err(not_here().into()) }
    }
}

/// Reads the list in a body.
async fn read(body: &Body, rules: &GuardRules) -> Result<RemovalList, Halt> {
    if body.len() > LIST_BYTES_MAX as u64 {
        return Err(refusals::of_body(ReceiveError::TooLarge));
    }
    let mut document = Vec::new();
    let read = body.each_chunk(|chunk| document.extend_from_slice(chunk)).await;
    read.map_err(|error| refusals::of_spool(&error))?;
    Ok(RemovalList::parse(&document, &rules.etag)?)
}

/// Returns the head of a removal of one object, with the credentials of the list.
fn head_of_removal(list: &RequestHeader, removal: &Removal) -> Result<RequestHeader, Halt> {
    let mut head = list.clone();
    head.set_method(Method::DELETE);
    head.set_raw_path(&removal.target(list.raw_path()))?;
    head.remove_all(|name| name.as_str().starts_with("content-") || *name == header::TRANSFER_ENCODING);
    if let Some(tag) = &removal.tag {
        head.insert_header(header::IF_MATCH, tag.clone())?;
    }
    Ok(head)
}

fn no_bucket() -> Refusal {
    let detail = "send the list of the objects to delete to their bucket, as POST /BUCKET?delete";
    Refusal::new(Code::NotSupported, detail)
}

/// The refusal of an object that no guarded route for S3 leads to, on this upstream.
fn not_here() -> Refusal {
    let detail = "no guarded route leads from this object to the server of the list: delete it by a request of its own";
    Refusal::new(Code::NotSupported, detail)
}

/// The refusal of an object whose removal is more than that.
fn not_in_list() -> Refusal {
    let detail = "the removal of this object changes others by the configuration: delete it by a request of its own";
    Refusal::new(Code::NotSupported, detail)
}
