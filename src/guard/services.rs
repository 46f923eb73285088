//! The access of services to the guard, beside its verbs.

use std::sync::Arc;

use http::Method;
use pingora::http::{RequestHeader, ResponseHeader};

use super::{
    Answer, Guard, Halt, Request,
    lease::{Leases, Operated, member_lines::PlaceInLine, rules_of_leases, usage::is_open_to_all},
    probe::{collection::TypeSeen, index::IndexDocument},
    viewer::Viewer,
    write::several::WrittenMembers,
};
use crate::{
    body::{Bodies, Body, Client},
    box_future::box_future,
    core::{
        http::client_address::ClientAddress,
        records::{
            record::{Revision, Snapshot},
            settled::shows_settled_state,
        },
        route::MembersFolder,
        tags::validators::Validators,
    },
    dialect::LeaseOperation,
    routing::{door::Door, table::RoutingTable},
    store::{Records, StoreError},
    upstream::{Exchange, Failure},
};

impl Guard {
    /// Carries out an operation on the lease of the resource of a request, as its service has read it.
    ///
    /// # Errors
    ///
    /// The operation is denied, or its route has no leases.
    pub(crate) async fn operate_lease(
        &self,
        client: &mut dyn Client,
        request: &Request,
        operation: LeaseOperation,
    ) -> Result<Operated, Halt> {
        let rules = rules_of_leases(request)?;
        self.finish_expected_delete(client, request).await;
        let operated = box_future(|| self.leases.operate(client, request, rules, operation)).await;
        self.finish_delete_after(client, request, true, operated).await
    }

    /// Returns the leases of resources, for operations on those of collections and on listed ones.
    pub(crate) fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Asks the upstream what it has at the target of a request. `None` if it does not know the question.
    pub(crate) async fn type_of(&self, request: &Request) -> Result<Option<TypeSeen>, Halt> {
        self.leases.probes.type_of(request).await
    }

    /// Lets a request go on to a refusal. If its client may not know of the resource, fails with the upstream's own answer.
    pub(crate) async fn let_in(&self, request: &Request) -> Result<(), Halt> {
        if is_open_to_all(request) {
            return Ok(());
        }
        let snapshot = self.knowledge.record(request).await?;
        self.leases.probes.let_in(request, &snapshot).await
    }

    /// Judges the preconditions of a request at this moment. Nothing keeps the state from changing.
    pub(crate) async fn judge_now(&self, request: &Request) -> Result<(), Halt> {
        let snapshot = self.knowledge.record(request).await?;
        self.leases.probes.judge(request, &snapshot).await.map(drop)
    }

    /// Returns a view of the resources around that of a request. `newest` is the newest revision that was seen before the
    /// upstream was asked.
    pub(crate) fn viewer(&self, (request, received): (Request, Arc<RequestHeader>), newest: Revision) -> Viewer {
        Viewer {
            request,
            received,
            newest,
            knowledge: Arc::clone(&self.knowledge),
            claims: Arc::clone(&self.claims),
            table: Arc::clone(self.writes.table()),
        }
    }

    /// Asks for the index of a collection with the credentials of a request ([`Probes::index`](super::probe::Probes)).
    pub(crate) async fn index(
        &self,
        request: &Request,
        question: (Method, &str),
        bytes_max: usize,
        describe: impl FnOnce(&mut RequestHeader) -> pingora::Result<()>,
    ) -> Result<IndexDocument, Halt> {
        self.leases.probes.index(request, question, bytes_max, describe).await
    }

    /// Puts the client of a request at the end of the line for the next of these members.
    pub(crate) fn stand_in_line(&self, request: &Request, members: &MembersFolder) -> PlaceInLine {
        self.leases.member_lines.of(request.key.digest(), request.sender.principal, members).enter()
    }

    /// Wakes the clients that wait for a member of a collection, if the resource at this target is one.
    pub(crate) fn may_be_free(&self, target: &[u8]) {
        self.leases.member_lines.may_be_free(target);
    }

    /// Returns the budgets of bodies.
    pub(crate) const fn bodies(&self) -> &Bodies {
        &self.writes.bodies
    }

    /// Returns the records of all resources.
    pub(crate) fn records(&self) -> &Records {
        &self.knowledge.records
    }

    /// Returns the number of this process in the marks that it makes.
    pub(crate) fn owner(&self) -> u64 {
        self.claims.owner()
    }

    /// Reads the record of the resource of a request, perhaps from memory.
    pub(crate) async fn record_of(&self, request: &Request) -> Result<Snapshot, StoreError> {
        self.knowledge.snapshot(&request.key).await
    }

    /// The same, after the marks that dead processes have left have become doubts. No write may ever come that would take
    /// them over.
    pub(crate) async fn record_without_dead_marks(&self, request: &Request) -> Result<Snapshot, StoreError> {
        self.reads.record_without_dead_marks(request).await
    }

    /// Refuses a request that the lease of its resource forbids. If `asks_upstream`, the upstream must let its client in
    /// too.
    pub(crate) async fn must_permit(&self, request: &Request, asks_upstream: bool) -> Result<(), Halt> {
        let snapshot = self.knowledge.record(request).await?;
        if asks_upstream {
            self.leases.probes.let_in(request, &snapshot).await?;
        }
        self.leases.permit(request, &snapshot).await.map(drop)
    }

    /// True if the version on a response is still that of its resource, and no write is in flight. Then no write has come
    /// between the label and the last byte.
    pub(crate) async fn is_settled(&self, request: &Request, head: &ResponseHeader) -> bool {
        let Ok(now) = self.record_of(request).await else { return false };
        let current = self.knowledge.version_tag(request, &now, &[]);
        now.has_no_pending_writes() && current.is_some() && current == Validators::from_headers(&head.headers).0.tag
    }

    /// Reads a settled state, no matter which states the route shows to other reads. Returns the answer with the record
    /// of that state.
    pub(crate) async fn read_settled(
        &self,
        client: &mut dyn Client,
        request: &Request,
    ) -> Result<(Answer, Snapshot), Halt> {
        self.finish_expected_delete(client, request).await;
        Box::pin(self.reads.read_settled(client, request)).await
    }

    /// Looks at a settled state that the upstream is about to read for another request. Its lease and the conditions of
    /// this read judge it.
    pub(crate) async fn may_be_read(&self, client: &mut dyn Client, request: &Request) -> Result<(), Halt> {
        self.finish_expected_delete(client, request).await;
        Box::pin(self.reads.may_be_read(client, request)).await
    }

    /// True if the state of this record is still the settled one.
    pub(crate) async fn is_unchanged(&self, request: &Request, since: &Snapshot) -> Result<bool, Halt> {
        Ok(shows_settled_state(since, &self.knowledge.record(request).await?))
    }

    /// Asks the upstream something else with the credentials of a request.
    pub(crate) async fn ask(&self, request: &Request, head: Box<RequestHeader>) -> Result<Exchange, Failure> {
        self.reads.ask(request, head).await
    }

    /// Handles a request that writes several resources. `named` are the writes of each alone, and `request` is what the
    /// upstream gets, with this body.
    pub(crate) async fn write_several(
        &self,
        client: &mut dyn Client,
        write: (&Request, &Body),
        named: Vec<Request>,
        members: &dyn WrittenMembers,
    ) -> Result<Answer, Halt> {
        Box::pin(self.writes.write_several(client, write, named, members)).await
    }

    /// Returns the table of the routes.
    pub(crate) fn table(&self) -> &RoutingTable {
        self.writes.table()
    }

    /// Decides where a request goes that a service has made, as the door does.
    pub(crate) fn door(&self, method: &Method, head: &RequestHeader, client: ClientAddress) -> Door {
        self.writes.door(method, head, client)
    }
}
