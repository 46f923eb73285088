//! Reads beside a write that show the state before it (`reads = "last"`). The check before the write has read that state,
//! and this process holds it until the write has ended.
//!
//! # Design
//!
//! *Why is no part cut out?* An answer with the whole is always right, and writes are short.

use super::{Reads, label::confirm};
use crate::{
    core::{
        records::record::Snapshot,
        tags::{
            precondition::{Judgement, judge},
            validators::Representation,
        },
        verdict::failed_read,
    },
    guard::{
        Answer, Halt, Relayed,
        answer::set_tag,
        knowledge::{
            committed_states::CommittedState,
            evidence::match_rule,
            responses::{not_modified_fields, wants_upstream},
        },
        lease::usage::judge_read_by_lease,
        request::Request,
    },
};
use http::{Method, header};

impl Reads {
    /// Answers a read from the state before the write that is in flight by this record, with the record of that state.
    /// `None`: the read waits, because the state is not held, or is not for this client.
    pub(super) fn read_committed(
        &self,
        request: &Request,
        snapshot: &Snapshot,
    ) -> Result<Option<(Answer, Snapshot)>, Halt> {
        let may_be_shown = request.method == Method::GET
            && request.is_named_by_head()
            && !request.content.shows_description()
            && !wants_upstream(&request.head.headers)
            && self.knowledge.may_know(request, snapshot)
            && judge_read_by_lease(request, Ok(snapshot)).is_ok();
        let state = may_be_shown.then(|| self.knowledge.committed.before_write(request, snapshot)).flatten();
        let Some(state) = state else { return Ok(None) };
        Ok(Some((self.answer_from(request, &state)?, state.snapshot.clone())))
    }

    /// Returns the answer that the backend would have led to before the write.
    fn answer_from(&self, request: &Request, state: &CommittedState) -> Result<Answer, Halt> {
        let before = Some(&state.snapshot);
        let current = Representation::Present(state.validators.clone());
        match judge(&request.method, &request.conditions, &current, match_rule(request.rules())) {
            Judgement::NotModified if !self.knowledge.tags_may_outlive_state(request, before) => {
                return Ok(confirm(request, before, not_modified_fields(&state.head.headers)));
            }
            Judgement::Failed { field, .. } => {
                let mut refusal = failed_read(&request.conditions, field, &current);
                refusal.cause_mut().client_may_know = true;
                return Err(refusal.into());
            }
            Judgement::Pass | Judgement::NotModified | Judgement::Unknowable => {}
        }
        let (mut head, body) = (state.head.clone(), state.body.for_answer());
        if let Some(tag) = &state.validators.tag {
            self.knowledge.was_given_out(request, tag, &state.snapshot, state.selection.clone());
        }
        set_tag(&mut head, state.validators.tag.as_ref())?;
        head.insert_header(header::CONTENT_LENGTH, body.len())?;
        Ok(Answer::Relayed(Box::new(Relayed { head, begun: body, rest: None })))
    }
}
