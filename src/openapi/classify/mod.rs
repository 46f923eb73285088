//! The resources, collections and actions among the paths of a document, with the reason for each, and the facts that
//! the document does not state.

mod apart;
mod names;
mod next_member;
mod question;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use http::Method;

use super::{
    facts::OperationFacts,
    paths::{ApiOperation, Paths},
    place::{PathPlace, PathPlaces},
    schema,
    tag::{self, TagChoice},
    template::RoutePath,
};
use crate::core::route::PathPattern;
use apart::keep_apart;
use names::{by_name, name_locks};
pub(super) use next_member::NextMemberKeys;
use next_member::name_next_members;
pub(super) use question::UndecidedPoint;

/// The role of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathRole {
    /// A state that clients read and write.
    Resource,
    /// A list of members. `writes_to` is the member that a body names.
    Collection { writes_to: Option<String> },
    /// A change of the resource at this path.
    Action { changes: String },
    /// Nothing that a route guards.
    Unguarded,
}

/// A path with the decisions about it.
#[derive(Clone, Debug)]
pub(super) struct DecidedPath<'p> {
    pub(super) path: RoutePath,
    pub(super) operations: Vec<&'p ApiOperation<'p>>,
    pub(super) role: PathRole,
    /// The source of tags.
    pub(super) tag: TagChoice,
    /// The effect of a POST: if it changes the resource like any other write, it may need a precondition.
    pub(super) post: Option<PostOfResource>,
    /// The collection that is written as a whole too.
    pub(super) also_changes: Option<String>,
    /// The operations by which the backend locks the resource.
    pub(super) locks: Vec<&'p ApiOperation<'p>>,
    /// How clients could take the members of the collection one by one.
    pub(super) next_member: Option<NextMemberKeys>,
    /// Why, as sentences.
    pub(super) reasons: Vec<String>,
}

/// The POST of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PostOfResource {
    /// It is the only way to change the resource.
    Updates,
    /// PUT or PATCH change it too.
    BesideOthers,
}

/// All decisions, and the open ones.
#[derive(Debug, Default)]
pub(super) struct RoutePlan<'p> {
    pub(super) decided: Vec<DecidedPath<'p>>,
    /// The open decisions, with their operations.
    pub(super) open: Vec<(UndecidedPoint, &'p ApiOperation<'p>)>,
}

/// Decides the role of each path.
pub(super) fn plan<'p>(paths: &'p Paths<'p>) -> RoutePlan<'p> {
    let (places, without) = PathPlaces::of(paths);
    let members = places.with_members();
    let mut plan = RoutePlan::default();
    plan.open.extend(without.into_iter().map(|operation| (UndecidedPoint::NoRoute, operation)));
    let elsewhere = paths.operations.iter().filter(|operation| operation.is_elsewhere);
    plan.open.extend(elsewhere.map(|operation| (UndecidedPoint::Elsewhere, operation)));
    let whole = WholeDocument { paths, places: &places, members: &members };
    let own: Vec<Option<DecidedPath<'p>>> =
        places.all.iter().enumerate().map(|at| whole.by_itself(at, &mut plan)).collect();
    let is_guarded: Vec<bool> = own.iter().map(|decided| is_state(decided.as_ref())).collect();
    for ((index, place), decided) in places.all.iter().enumerate().zip(own) {
        let decided = decided.or_else(|| whole.by_body(index, place, &is_guarded));
        let decided = decided.unwrap_or_else(|| whole.by_others(index, place, &is_guarded, &mut plan));
        plan.decided.push(decided);
    }
    name_collections(&mut plan.decided, &places);
    name_locks(&mut plan.decided, &places);
    name_next_members(&mut plan.decided, &places, paths.document);
    keep_apart(&mut plan);
    plan.open.extend(plan.decided.iter().flat_map(|decided| remarks(paths, decided)).collect::<Vec<_>>());
    plan
}

fn is_state(decided: Option<&DecidedPath<'_>>) -> bool {
    decided.is_some_and(|decided| matches!(decided.role, PathRole::Resource | PathRole::Collection { .. }))
}

/// All paths, to look at one among them.
struct WholeDocument<'p, 'w> {
    paths: &'p Paths<'p>,
    places: &'w PathPlaces<'p>,
    members: &'w HashMap<usize, Vec<usize>>,
}

impl<'p> WholeDocument<'p, '_> {
    /// Returns the role of a path by its own operations, and by those of its members; `None` if it depends on other
    /// paths.
    fn by_itself(&self, (index, place): (usize, &PathPlace<'p>), plan: &mut RoutePlan<'p>) -> Option<DecidedPath<'p>> {
        let unguarded = |reasons| Some(decided(place, PathRole::Unguarded, reasons));
        if place.writes().next().is_none() {
            return unguarded(vec!["It is only read.".to_owned()]);
        }
        if let Some(open) = by_name(place, self.places) {
            plan.open.extend(place.writes().map(|operation| (open, operation)));
            return unguarded(Vec::new());
        }
        let read = place.read()?;
        let has_members = self.members.contains_key(&index);
        let post = place.operation(&Method::POST);
        let is_replaced = place.replacing().next().is_some();
        // A resource with parts of its own is a resource: the name at its end says so.
        let holds_members = has_members && (place.last_text().is_some() || !is_replaced);
        if holds_members || (!is_replaced && self.is_list(place, read)) {
            return Some(self.collection(index, place, read, plan));
        }
        if is_replaced || place.last_text().is_none() {
            return Some(self.resource(place, read, plan));
        }
        plan.open.extend(post.map(|operation| (UndecidedPoint::AppendsOrReplaces, operation)));
        unguarded(Vec::new())
    }

    /// True if a path without members is a list to which its POST adds.
    fn is_list(&self, place: &PathPlace<'p>, read: &'p ApiOperation<'p>) -> bool {
        let facts = |operation| OperationFacts { document: self.paths.document, operation };
        let creates = place.operation(&Method::POST).is_some_and(|post| facts(post).has_status("201"));
        let is_list =
            || facts(read).answer_schema().is_some_and(|schema| schema::holds_list(self.paths.document, schema));
        place.last_text().is_some() && (creates || is_list())
    }

    fn resource(&self, place: &PathPlace<'p>, read: &'p ApiOperation<'p>, plan: &mut RoutePlan<'p>) -> DecidedPath<'p> {
        let replaces = place.operations.iter().any(|each| matches!(each.method, Method::PUT | Method::PATCH));
        let post = place.operation(&Method::POST);
        plan.open.extend(post.filter(|_| replaces).map(|post| (UndecidedPoint::PostBesideOthers, post)));
        let post = post.map(|_| if replaces { PostOfResource::BesideOthers } else { PostOfResource::Updates });
        let writes: Vec<&str> = place.writes().map(|operation| operation.method.as_str()).collect();
        let mut reasons = vec![format!("Resource: read by {}, written by {}.", read.method, writes.join(", "))];
        if post == Some(PostOfResource::Updates) {
            reasons.push("Nothing else changes it, so POST updates it.".to_owned());
        }
        let tag = self.tag(place, read);
        DecidedPath { tag, post, ..decided(place, PathRole::Resource, reasons) }
    }

    fn collection(
        &self,
        index: usize,
        place: &PathPlace<'p>,
        read: &'p ApiOperation<'p>,
        plan: &mut RoutePlan<'p>,
    ) -> DecidedPath<'p> {
        let writes_to = self.member_of_body(index, place);
        let members = self.members.get(&index).and_then(|members| self.places.all.get(*members.first()?));
        let lists = members.map_or("a list".to_owned(), |member| format!("its members are {}", member.path.spelled));
        let reason = format!("Collection: {lists}.");
        if writes_to.is_none() {
            plan.open.extend(place.replacing().map(|operation| (UndecidedPoint::ChangesMembers, operation)));
        }
        let tag = self.tag(place, read);
        DecidedPath { tag, ..decided(place, PathRole::Collection { writes_to }, vec![reason]) }
    }

    fn tag(&self, place: &PathPlace<'p>, read: &'p ApiOperation<'p>) -> TagChoice {
        let facts = |operation| OperationFacts { document: self.paths.document, operation };
        let writes: Vec<_> = place.writes().map(facts).collect();
        tag::choose(facts(read), &writes)
    }

    /// Returns the role of a path without a read, if the body of its PUT names one of its members.
    fn by_body(&self, index: usize, place: &PathPlace<'p>, is_guarded: &[bool]) -> Option<DecidedPath<'p>> {
        let members = self.members.get(&index)?;
        let writes_to = self.member_of_body(index, place)?;
        members.iter().any(|member| is_guarded.get(*member) == Some(&true)).then(|| {
            let reason = "Collection: the body of a write names the member.".to_owned();
            decided(place, PathRole::Collection { writes_to: Some(writes_to) }, vec![reason])
        })
    }

    /// The member that the body of a PUT or PATCH names: `/pet/{json./id}`.
    fn member_of_body(&self, index: usize, place: &PathPlace<'p>) -> Option<String> {
        let members = self.members.get(&index)?.iter().filter_map(|member| self.places.all.get(*member));
        let member = members.into_iter().find(|member| member.read().is_some() && member.writes().next().is_some())?;
        let path = self.places.member_path(index, member)?;
        let mut updates = place.replacing().filter(|operation| operation.method != Method::DELETE);
        let write = OperationFacts { document: self.paths.document, operation: updates.next()? };
        let own = schema::name_of(self.paths.document, write.request_schema()?, &path.name)?;
        Some(path.with(&format!("json./{own}")))
    }

    /// Returns the role of a path by the resource above it.
    fn by_others(
        &self,
        index: usize,
        place: &PathPlace<'p>,
        is_guarded: &[bool],
        plan: &mut RoutePlan<'p>,
    ) -> DecidedPath<'p> {
        let is_guarded = |index: &usize| is_guarded.get(*index) == Some(&true);
        let has_guarded_members = self.members.get(&index).is_some_and(|members| members.iter().any(is_guarded));
        if has_guarded_members && place.replacing().next().is_none() {
            plan.open.extend(place.writes().map(|operation| (UndecidedPoint::Creates, operation)));
            return decided(place, PathRole::Unguarded, Vec::new());
        }
        let is_state = |pattern: &PathPattern| self.places.find(pattern).as_ref().is_some_and(is_guarded);
        if let Some((changes, _)) = place.above().find(|(_, pattern)| is_state(pattern)) {
            let reason = format!("Action: no GET reads it, and it may change {changes}.");
            return decided(place, PathRole::Action { changes }, vec![reason]);
        }
        plan.open.extend(place.writes().map(|operation| (UndecidedPoint::NamesNoResource, operation)));
        decided(place, PathRole::Unguarded, Vec::new())
    }
}

fn decided<'p>(place: &PathPlace<'p>, role: PathRole, reasons: Vec<String>) -> DecidedPath<'p> {
    DecidedPath {
        path: place.path.clone(),
        operations: place.operations.clone(),
        role,
        tag: TagChoice::default(),
        post: None,
        also_changes: None,
        locks: Vec::new(),
        next_member: None,
        reasons,
    }
}

/// Names, with each member, the collection that is written as a whole too.
fn name_collections(all: &mut [DecidedPath<'_>], places: &PathPlaces<'_>) {
    let is_written = |decided: &DecidedPath<'_>| {
        let is_collection = decided.role == PathRole::Collection { writes_to: None };
        is_collection && decided.operations.iter().any(|each| each.is_write() && each.method != Method::POST)
    };
    let written: Vec<bool> = all.iter().map(is_written).collect();
    for (decided, place) in all.iter_mut().zip(&places.all).filter(|(decided, _)| decided.role == PathRole::Resource) {
        let collection = places.collection_of(place).filter(|(_, index)| written.get(*index) == Some(&true));
        if let Some((path, _)) = collection {
            decided.reasons.push(format!("{path} is written as a whole too."));
            decided.also_changes = Some(path);
        }
    }
}

/// Returns the remarks on guarded operations for a reader of the configuration.
fn remarks<'p>(paths: &Paths<'_>, decided: &DecidedPath<'p>) -> Vec<(UndecidedPoint, &'p ApiOperation<'p>)> {
    let mut open = Vec::new();
    if decided.role == PathRole::Unguarded {
        return open;
    }
    let names_member = matches!(decided.role, PathRole::Collection { writes_to: Some(_) });
    for operation in &decided.operations {
        let facts = OperationFacts { document: paths.document, operation };
        let is_list = || {
            let schema = facts.request_schema();
            schema.is_some_and(|schema| schema::is_of_type(paths.document, schema, &["array"]))
        };
        let all = [
            (UndecidedPoint::Wider, operation.is_write() && decided.path.is_wider),
            (UndecidedPoint::ListOfBodies, operation.is_write() && is_list()),
            (UndecidedPoint::OtherBodies, operation.is_write() && names_member && !facts.takes_json_alone()),
            (UndecidedPoint::Multipart, operation.is_write() && facts.takes_multipart()),
            (UndecidedPoint::File, facts.carries_file()),
            (UndecidedPoint::Streams, facts.streams()),
        ];
        open.extend(all.into_iter().filter(|(_, is_so)| *is_so).map(|(open, _)| (open, *operation)));
    }
    open
}
