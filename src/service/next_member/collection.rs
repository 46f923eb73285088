//! The collection that a request names, and its index.

use pingora::http::RequestHeader;

use super::Service;
use crate::{
    core::{
        http::request_target::{KeptInNames, normalize, split_query},
        members::{
            index_form::IndexForm,
            index_page::{IndexPage, PageStart},
        },
        refusal::{Code, Refusal},
        route::MembersFolder,
    },
    dialect::index::{INDEX_BYTES_MAX, MalformedIndex, question, read},
    guard::{Guard, Halt, IndexDocument, Request, host, rules_of},
    routing::GuardedRequest,
};

/// A collection, and where its members are.
pub(in crate::service) struct Collection {
    /// The members, as clients know them.
    pub(in crate::service) members: MembersFolder,
    /// The members, as the upstream knows them.
    at_upstream: MembersFolder,
    form: IndexForm,
}

impl Collection {
    /// The collection that a request on its route names.
    pub(super) fn of(guard: &Guard, head: &RequestHeader, guarded: &GuardedRequest) -> Result<Self, Halt> {
        let (path, _) = split_query(head.raw_path());
        let path = normalize(path, KeptInNames::ALL)
            .map_err(|ambiguous| Refusal::new(Code::AmbiguousTarget, ambiguous.to_string()))?;
        let found = guard.table().find(host(head), &path);
        let template = guarded.route.members.as_ref();
        let members = found.zip(template).and_then(|(found, template)| template.folder(&found.captures));
        let members = members.ok_or_else(no_members)?;
        Self::with(members, guarded)
    }

    /// The collection with these members, on the route of a request.
    pub(in crate::service) fn with(members: MembersFolder, guarded: &GuardedRequest) -> Result<Self, Halt> {
        let folder = normalize(members.path().as_bytes(), KeptInNames::ALL).ok();
        let folder = folder.and_then(|folder| guarded.route.mapping.upstream_path(&folder)).ok_or_else(no_members)?;
        Ok(Self { at_upstream: members.at(&folder), members, form: rules_of(guarded)?.index.clone() })
    }
}

impl Service<'_> {
    /// Reads a page of the index, as the backend shows it to the client of a request for the collection.
    pub(in crate::service) async fn read_index(
        &self,
        request: &Request,
        collection: &Collection,
        start: Option<&PageStart>,
    ) -> Result<IndexPage, Halt> {
        let Collection { at_upstream, form, .. } = collection;
        let asked = question(form, (at_upstream, request.head.raw_path()), start);
        let describe = |head: &mut RequestHeader| {
            head.set_raw_path(&asked.target)?;
            asked.fields.iter().try_for_each(|(name, value)| head.insert_header(name.clone(), value.clone()))
        };
        match self.guard.index(request, (asked.method.clone(), asked.content), INDEX_BYTES_MAX, describe).await? {
            IndexDocument::Absent => Ok(IndexPage::from(start)),
            IndexDocument::Read(document) => {
                read(form, &document, at_upstream, start).map_err(|malformed| of_index(malformed).into())
            }
        }
    }
}

fn no_members() -> Refusal {
    Refusal::new(Code::NotSupported, "the collection has no members that a request could take")
}

fn of_index(malformed: MalformedIndex) -> Refusal {
    Refusal::new(Code::UpstreamFailed, malformed.to_string())
}
