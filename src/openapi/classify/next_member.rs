//! Collections whose members clients could take one by one (`members` and `index`).

use super::{DecidedPath, PathRole};
use crate::{
    core::route::MembersTemplate,
    openapi::{
        document::ApiDocument,
        facts::OperationFacts,
        place::{PathPlace, PathPlaces},
        schema,
    },
};

/// The keys by which clients take the next member of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NextMemberKeys {
    /// The value of `members`.
    pub(crate) members: String,
    /// The value of `index`.
    pub(crate) index: String,
}

/// Names, with each collection whose answer lists the names of resources, how clients could take them.
pub(super) fn name_next_members<'p>(all: &mut [DecidedPath<'p>], places: &PathPlaces<'p>, document: &ApiDocument) {
    let of_collections = places.with_members();
    let is_resource: Vec<bool> = all.iter().map(|decided| decided.role == PathRole::Resource).collect();
    for (index, decided) in all.iter_mut().enumerate() {
        let members = of_collections.get(&index).filter(|_| matches!(decided.role, PathRole::Collection { .. }));
        let member = members.into_iter().flatten().find(|member| is_resource.get(**member) == Some(&true));
        let Some(member) = member.and_then(|member| places.all.get(*member)) else { continue };
        decided.next_member = next_member(index, member, places, document);
    }
}

fn next_member<'p>(
    collection: usize,
    member: &PathPlace<'p>,
    places: &PathPlaces<'p>,
    document: &ApiDocument,
) -> Option<NextMemberKeys> {
    let place = places.all.get(collection)?;
    let path = places.member_path(collection, member)?;
    let members = path.with(&path.name);
    MembersTemplate::parse(&members, &place.path.pattern).ok()?;
    let listed = OperationFacts { document, operation: place.read()? }.answer_schema()?;
    let names = schema::names_in_list(document, listed, &path.name)?;
    Some(NextMemberKeys { members, index: format!("json:{names}") })
}
