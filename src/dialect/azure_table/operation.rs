//! The operations, read from the method and the last segment of the path.

use http::Method;
use percent_encoding::percent_decode;

use crate::{
    core::{
        http::request_target::split_query,
        refusal::{Code, Refusal},
    },
    dialect::Intent,
};

/// The name under which the tables themselves are listed, created and deleted.
const TABLES: &str = "Tables";

/// An operation that the dialect serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableOperation {
    /// Lists tables, or shows one.
    QueryTables,
    /// Creates a table.
    CreateTable,
    /// Deletes a table with its entities.
    DeleteTable,
    /// Lists the entities of a table.
    QueryEntities,
    /// Inserts an entity, which must not exist.
    InsertEntity,
    /// Shows one entity.
    GetEntity,
    /// Replaces an entity. Without a condition it may also create one.
    UpdateEntity,
    /// Changes properties of an entity. Without a condition it may also create one.
    MergeEntity,
    /// Deletes an entity.
    DeleteEntity,
}

/// The resource of a path.
#[derive(Debug, PartialEq, Eq)]
enum Resource {
    Tables,
    Table,
    Entities,
    Entity,
}

impl TableOperation {
    /// All operations, with their names in Azure's documentation.
    const ALL: [(Self, &'static str); 9] = [
        (Self::QueryTables, "Query Tables"),
        (Self::CreateTable, "Create Table"),
        (Self::DeleteTable, "Delete Table"),
        (Self::QueryEntities, "Query Entities"),
        (Self::InsertEntity, "Insert Entity"),
        (Self::GetEntity, "Get Entity"),
        (Self::UpdateEntity, "Update Entity"),
        (Self::MergeEntity, "Merge Entity"),
        (Self::DeleteEntity, "Delete Entity"),
    ];

    /// Returns the operation with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(operation, _)| operation)
    }

    /// Returns the operation's name.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(known, _)| *known == self).map_or("", |(_, name)| name)
    }

    /// Returns the purpose of the operation.
    pub const fn intent(self) -> Intent {
        match self {
            Self::QueryTables | Self::QueryEntities | Self::GetEntity => Intent::Read,
            Self::CreateTable | Self::InsertEntity => Intent::Append,
            Self::DeleteTable => Intent::RemoveTree,
            Self::UpdateEntity | Self::MergeEntity | Self::DeleteEntity => Intent::Write,
        }
    }

    /// Reads the operation of a request.
    ///
    /// # Errors
    ///
    /// The request is none of the operations.
    pub fn of(method: &Method, target: &[u8]) -> Result<Self, Refusal> {
        let (path, query) = split_query(target);
        let is_part = |pair: &[u8]| [&b"comp="[..], b"restype="].iter().any(|name| pair.starts_with(name));
        if query.unwrap_or_default().split(|&octet| octet == b'&').any(is_part) {
            return Err(not_served(
                "Table ACLs and properties of the service are not served here: the backend decides who may read and write.",
            ));
        }
        // Some clients end paths with a slash, with which a key is the same.
        let path = path.strip_suffix(b"/").unwrap_or(path);
        let segment = path.rsplit(|&octet| octet == b'/').next().unwrap_or_default();
        let resource = Resource::of(&percent_decode(segment).decode_utf8_lossy())?;
        match (resource, method.as_str()) {
            (Resource::Tables | Resource::Table, "GET" | "HEAD") => Ok(Self::QueryTables),
            (Resource::Tables, "POST") => Ok(Self::CreateTable),
            (Resource::Table, "DELETE") => Ok(Self::DeleteTable),
            (Resource::Entities, "GET" | "HEAD") => Ok(Self::QueryEntities),
            (Resource::Entities, "POST") => Ok(Self::InsertEntity),
            (Resource::Entity, "GET" | "HEAD") => Ok(Self::GetEntity),
            (Resource::Entity, "PUT") => Ok(Self::UpdateEntity),
            (Resource::Entity, "PATCH" | "MERGE") => Ok(Self::MergeEntity),
            (Resource::Entity, "DELETE") => Ok(Self::DeleteEntity),
            _ => Err(Refusal::new(Code::MethodNotAllowed, "No operation of this resource has that method.")),
        }
    }
}

/// Returns the beginning of the keys of all entities of a table, by the key of the table.
pub(super) fn entities_of(key: &str) -> Option<String> {
    let (service, table) = key.rsplit_once('/')?;
    let name = table.strip_prefix(TABLES)?.strip_prefix("('")?.strip_suffix("')")?;
    Some(format!("{service}/{name}("))
}

impl Resource {
    /// Reads the last segment of a path, decoded.
    fn of(segment: &str) -> Result<Self, Refusal> {
        if segment.starts_with('$') {
            return Err(not_served(
                "a batch changes several entities in one request, and no tag covers them all: send each operation alone",
            ));
        }
        let (name, keys) = segment.split_at(segment.find('(').unwrap_or(segment.len()));
        match (name, keys) {
            ("", _) => Err(bad_path()),
            (TABLES, "" | "()") => Ok(Self::Tables),
            (TABLES, keys) if is_value(keys.strip_prefix('('), ")") => Ok(Self::Table),
            (_, "" | "()") => Ok(Self::Entities),
            (_, keys) if is_entity(keys) => Ok(Self::Entity),
            _ => Err(bad_path()),
        }
    }
}

/// True if the keys are those of an entity, in the order in which the SDKs send them.
fn is_entity(keys: &str) -> bool {
    let partition = keys.strip_prefix("(PartitionKey=");
    is_value(partition.and_then(after_value).and_then(|rest| rest.strip_prefix(",RowKey=")), ")")
}

/// True if a text is a value in quotes, and then this end.
fn is_value(text: Option<&str>, end: &str) -> bool {
    text.and_then(after_value) == Some(end)
}

/// The rest of a text after a value in quotes. A quote in the value is doubled.
fn after_value(text: &str) -> Option<&str> {
    let mut rest = text.strip_prefix('\'')?;
    loop {
        rest = rest.split_once('\'')?.1;
        match rest.strip_prefix('\'') {
            Some(following) => rest = following,
            None => return Some(rest),
        }
    }
}

fn not_served(detail: &'static str) -> Refusal {
    Refusal::new(Code::NotSupported, detail).called(501, "NotImplemented")
}

/// Refuses a second spelling of an entity: two spellings would be two keys.
fn bad_path() -> Refusal {
    let detail = "The path is neither that of a table nor that of an entity: send \
                  /table(PartitionKey='...',RowKey='...'), in this order and without spaces.";
    Refusal::new(Code::AmbiguousTarget, detail).called(400, "InvalidUri")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, target: &str) -> Result<&'static str, &'static str> {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let read = TableOperation::of(&method, target.as_bytes());
        read.map(TableOperation::name).map_err(|refusal| refusal.service.map_or("MethodNotAllowed", |named| named.code))
    }

    #[test]
    fn each_operation_has_a_method_and_a_path() {
        const ENTITY: &str = "/hr/people(PartitionKey='a',RowKey='1')?$select=name";
        for (method, target, operation) in [
            ("GET", "/Tables", "Query Tables"),
            ("GET", "/Tables('people')", "Query Tables"),
            ("POST", "/hr/Tables", "Create Table"),
            ("POST", "/hr/Tables/", "Create Table"),
            ("DELETE", "/Tables('people')", "Delete Table"),
            ("GET", "/people()?$filter=a", "Query Entities"),
            ("HEAD", "/people", "Query Entities"),
            ("POST", "/people", "Insert Entity"),
            ("GET", ENTITY, "Get Entity"),
            ("PUT", ENTITY, "Update Entity"),
            ("PATCH", ENTITY, "Merge Entity"),
            ("MERGE", ENTITY, "Merge Entity"),
            ("DELETE", ENTITY, "Delete Entity"),
        ] {
            assert_eq!(read(method, target), Ok(operation), "{method} {target}");
            assert_eq!(TableOperation::named(operation).map(TableOperation::name), Some(operation));
        }
    }

    #[test]
    fn one_slash_may_end_a_path() {
        for (method, target, operation) in [
            ("POST", "/people/", "Insert Entity"),
            ("PUT", "/people(PartitionKey='a',RowKey='1')/?sv=1", "Update Entity"),
            ("DELETE", "/Tables('people')/", "Delete Table"),
        ] {
            assert_eq!(read(method, target), Ok(operation), "{target}");
        }
        for target in ["/", "/people//", "/people(PartitionKey='a',RowKey='1')//"] {
            assert_eq!(read("PUT", target), Err("InvalidUri"), "{target}");
        }
    }

    #[test]
    fn the_entities_of_a_table_are_known_by_its_key() {
        assert_eq!(entities_of("u:/a/Tables('people')").as_deref(), Some("u:/a/people("));
        for other in ["u:/a/Tables", "u:/a/people", "u:/a/people(PartitionKey='a',RowKey='b')"] {
            assert_eq!(entities_of(other), None, "{other}");
        }
    }

    #[test]
    fn an_entity_has_one_spelling() {
        for keys in [
            "PartitionKey='',RowKey=''",
            "PartitionKey='it''s',RowKey='(,)'",
            "PartitionKey=%27a%27,RowKey='''%20RowKey=''1'",
        ] {
            assert_eq!(read("GET", &format!("/people({keys})")), Ok("Get Entity"), "{keys}");
        }
        for keys in [
            "RowKey='1',PartitionKey='a'",
            "PartitionKey='a', RowKey='1'",
            "PartitionKey='a',RowKey='1' ",
            "PartitionKey='a'",
            "partitionkey='a',rowkey='1'",
            "PartitionKey='it's',RowKey='1'",
            "PartitionKey='a',RowKey='1')(",
            "PartitionKey=a,RowKey=1",
        ] {
            assert_eq!(read("PUT", &format!("/people({keys})")), Err("InvalidUri"), "{keys}");
        }
        assert_eq!(read("PUT", "/(PartitionKey='a',RowKey='1')"), Err("InvalidUri"));
    }

    #[test]
    fn all_other_requests_are_refused() {
        assert_eq!(read("POST", "/$batch"), Err("NotImplemented"));
        assert_eq!(read("PUT", "/people?comp=acl"), Err("NotImplemented"));
        assert_eq!(read("GET", "/?restype=service&comp=properties"), Err("NotImplemented"));
        for (method, target) in
            [("PUT", "/people"), ("DELETE", "/people()"), ("OPTIONS", "/people"), ("PUT", "/Tables")]
        {
            assert_eq!(read(method, target), Err("MethodNotAllowed"), "{method} {target}");
        }
    }
}
