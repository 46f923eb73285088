//! The facts about bodies in schemas: their members, and whether they are lists.

use serde_json::Value;

use super::document::ApiDocument;

/// The most schemas that one question looks at: a recursive schema has no end.
const LOOKS_MAX: usize = 500;

/// A question about a schema.
struct Look<'d> {
    document: &'d ApiDocument,
    left: usize,
}

/// Returns the schema of a member that each value of a schema has, at this pointer.
pub(super) fn member<'d>(document: &'d ApiDocument, schema: &'d Value, tokens: &[&str]) -> Option<&'d Value> {
    let mut look = Look { document, left: LOOKS_MAX };
    tokens.iter().try_fold(schema, |schema, token| look.member(schema, token))
}

/// True if the values of a schema are of one of these types, such as `integer`.
pub(super) fn is_of_type(document: &ApiDocument, schema: &Value, types: &[&str]) -> bool {
    let mut look = Look { document, left: LOOKS_MAX };
    look.is_of_type(schema, types)
}

/// True if the values of a schema are lists, or objects with a list in them.
pub(super) fn holds_list(document: &ApiDocument, schema: &Value) -> bool {
    if is_of_type(document, schema, &["array"]) {
        return true;
    }
    let mut look = Look { document, left: LOOKS_MAX };
    look.members(schema).into_iter().any(|(_, member)| is_of_type(document, member, &["array"]))
}

/// The member in which a body has the name of a resource: the one with this name, else `id`.
pub(super) fn name_of<'n>(document: &ApiDocument, schema: &Value, name: &'n str) -> Option<&'n str> {
    [name, "id"].into_iter().find(|name| {
        member(document, schema, &[name]).is_some_and(|member| is_of_type(document, member, &["string", "integer"]))
    })
}

/// The pointer to the names in a list of resources, which is the whole body or the only list in it. `*` stands for each
/// element.
pub(super) fn names_in_list(document: &ApiDocument, schema: &Value, name: &str) -> Option<String> {
    let mut look = Look { document, left: LOOKS_MAX };
    let (list, place) = if is_of_type(document, schema, &["array"]) {
        (schema, String::new())
    } else {
        let mut lists = look.members(schema).into_iter().filter(|(_, member)| is_of_type(document, member, &["array"]));
        let (list_name, list) = lists.next()?;
        let is_only = lists.next().is_none() && list_name != "*";
        (list, is_only.then(|| format!("/{}", list_name.replace('~', "~0").replace('/', "~1")))?)
    };
    let own = name_of(document, look.elements(list)?, name)?;
    Some(format!("{place}/*/{}", own.replace('~', "~0").replace('/', "~1")))
}

/// True if the values of a schema are files.
pub(super) fn is_binary(document: &ApiDocument, schema: &Value) -> bool {
    let format = document.resolved(schema).and_then(|schema| schema.get("format")).and_then(Value::as_str);
    format == Some("binary")
}

impl<'d> Look<'d> {
    /// The schema itself, unless the question has looked at enough of them.
    fn at(&mut self, schema: &'d Value) -> Option<&'d Value> {
        self.left = self.left.checked_sub(1)?;
        self.document.resolved(schema)
    }

    fn member(&mut self, schema: &'d Value, name: &str) -> Option<&'d Value> {
        let schema = self.at(schema)?;
        if let Some(own) = schema.get("properties").and_then(|properties| properties.get(name)) {
            return Some(own);
        }
        if let Some(found) = parts(schema, "allOf").iter().find_map(|part| self.member(part, name)) {
            return Some(found);
        }
        ["oneOf", "anyOf"].into_iter().find_map(|choice| {
            let mut of_each = parts(schema, choice).iter().map(|part| self.member(part, name));
            let first = of_each.next()??;
            of_each.all(|member| member.is_some()).then_some(first)
        })
    }

    fn members(&mut self, schema: &'d Value) -> Vec<(&'d str, &'d Value)> {
        let Some(schema) = self.at(schema) else { return Vec::new() };
        let own = schema.get("properties").and_then(Value::as_object);
        let mut members: Vec<_> = own.into_iter().flatten().map(|(name, member)| (name.as_str(), member)).collect();
        for part in parts(schema, "allOf") {
            members.extend(self.members(part));
        }
        members
    }

    /// The schema of the elements of a list.
    fn elements(&mut self, schema: &'d Value) -> Option<&'d Value> {
        let schema = self.at(schema)?;
        schema.get("items").or_else(|| parts(schema, "allOf").iter().find_map(|part| self.elements(part)))
    }

    fn is_of_type(&mut self, schema: &'d Value, types: &[&str]) -> bool {
        let Some(schema) = self.at(schema) else { return false };
        let is_one = |name: &Value| name.as_str().is_some_and(|name| types.contains(&name));
        match schema.get("type") {
            Some(Value::Array(names)) => {
                let mut others = names.iter().filter(|name| name.as_str() != Some("null")).peekable();
                others.peek().is_some() && others.all(is_one)
            }
            Some(name) => is_one(name),
            None if types == ["array"] && schema.get("items").is_some() => true,
            None => parts(schema, "allOf").iter().any(|part| self.is_of_type(part, types)),
        }
    }
}

fn parts<'d>(schema: &'d Value, name: &str) -> &'d [Value] {
    schema.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(schemas: &str) -> ApiDocument {
        let text = format!("openapi: 3.1.0\ncomponents:\n  schemas:\n{schemas}");
        ApiDocument::parse("d", &text).expect("a document")
    }

    const SCHEMAS: &str = "
    Plain: {properties: {version: {type: integer}, meta: {$ref: '#/components/schemas/Meta'}}}
    Meta: {properties: {rev: {type: [string, 'null']}}}
    All: {allOf: [{$ref: '#/components/schemas/Meta'}, {$ref: '#/components/schemas/Plain'}]}
    Some: {oneOf: [{$ref: '#/components/schemas/Plain'}, {$ref: '#/components/schemas/Meta'}]}
    Each: {anyOf: [{$ref: '#/components/schemas/All'}, {$ref: '#/components/schemas/Plain'}]}
    Loop: {allOf: [{$ref: '#/components/schemas/Loop'}, {$ref: '#/components/schemas/Loop'}]}
    Choice: {oneOf: []}
    List: {type: array, items: {}}
    Items: {items: {}}
    Page: {allOf: [{properties: {data: {type: array}}}]}
    File: {type: string, format: binary}
    Note: {properties: {id: {type: integer}}}
    Notes: {allOf: [{type: array}, {items: {$ref: '#/components/schemas/Note'}}]}
    Named: {items: {properties: {id: {type: integer}, note: {type: string}}}}
    NotePage: {properties: {total: {type: integer}, data: {$ref: '#/components/schemas/Notes'}}}
    TwoLists: {properties: {a: {$ref: '#/components/schemas/Notes'}, b: {$ref: '#/components/schemas/Notes'}}}
    Mixed: {type: [string, integer]}
    Nothing: {type: ['null']}
";

    #[test]
    fn members_are_found_in_all_that_a_value_must_be() {
        let document = document(SCHEMAS);
        let schemas = &document.root()["components"]["schemas"];
        for (name, tokens, expected) in [
            ("Plain", &["version"][..], true),
            ("Plain", &["meta", "rev"], true),
            ("Plain", &["rev"], false),
            ("All", &["version"], true),
            ("Some", &["version"], false),
            ("Each", &["version"], true),
            ("Loop", &["version"], false),
            ("Choice", &["version"], false),
        ] {
            assert_eq!(member(&document, &schemas[name], tokens).is_some(), expected, "{name} {tokens:?}");
        }
    }

    #[test]
    fn types_are_those_of_every_value() {
        let document = document(SCHEMAS);
        let schemas = &document.root()["components"]["schemas"];
        let rev = member(&document, &schemas["Plain"], &["meta", "rev"]).expect("a member");
        assert!(is_of_type(&document, rev, &["string"]));
        assert!(!is_of_type(&document, &schemas["Mixed"], &["string"]));
        assert!(is_of_type(&document, &schemas["Mixed"], &["string", "integer"]));
        assert!(!is_of_type(&document, &schemas["Nothing"], &["string"]));
        assert!(!is_of_type(&document, &schemas["Loop"], &["string"]));
        for (name, expected) in [("List", true), ("Items", true), ("Page", true), ("Plain", false), ("Loop", false)] {
            assert_eq!(holds_list(&document, &schemas[name]), expected, "{name}");
        }
        for (name, place) in [
            ("Notes", Some("/*/id")),
            ("Named", Some("/*/note")),
            ("NotePage", Some("/data/*/id")),
            ("TwoLists", None),
            ("List", None),
            ("Plain", None),
        ] {
            assert_eq!(names_in_list(&document, &schemas[name], "note").as_deref(), place, "{name}");
        }
        assert!(is_binary(&document, &schemas["File"]) && !is_binary(&document, &schemas["Plain"]));
    }
}
