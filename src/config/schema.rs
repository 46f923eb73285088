//! The JSON Schema of the configuration, for editors: the shape comes from the mirror that reads files, and the
//! descriptions and defaults come from `config/ifmatch.toml`.

use schemars::SchemaGenerator;
use serde_json::{Map, Value};

use super::{
    raw::File,
    section::{Key, Keys as _},
};

/// The users' reference.
pub(super) const REFERENCE: &str = include_str!("../../config/ifmatch.toml");

/// Returns all keys of a file, table by table.
pub fn keys() -> Vec<Key> {
    let mut keys = Vec::new();
    File::list("", false, &mut keys);
    keys
}

/// Returns the schema (JSON Schema, draft 2020-12).
pub fn schema() -> Value {
    let mut schema = Value::from(SchemaGenerator::default().into_root_schema_for::<File>());
    without_null(&mut schema);
    // A key of a later example has no comment of its own.
    for entry in entries(REFERENCE).into_iter().filter(|entry| !entry.description.is_empty()) {
        let Some(property) = property(&mut schema, &entry.path) else { continue };
        property.insert("description".to_owned(), entry.description.into());
        if let Some(default) = entry.default {
            property.insert("default".to_owned(), default);
        }
    }
    for key in keys() {
        let path: Vec<String> = key.path.split('.').map(str::to_owned).collect();
        let (Some(property), Some((least, most))) = (property(&mut schema, &path), key.bounds) else { continue };
        if property.get("type").is_some_and(|kind| kind == "integer") {
            property.extend([("minimum", least), ("maximum", most)].map(|(name, end)| (name.to_owned(), number(&end))));
        }
    }
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), "The configuration of ifmatch".into());
    }
    schema
}

fn number(text: &str) -> Value {
    text.parse::<u64>().map_or(Value::Null, Value::from)
}

/// A key of the reference with its comment.
#[derive(Debug, PartialEq)]
struct Entry {
    /// The tables and the key: a list of tables is one step, and so is a table whose name is the user's.
    path: Vec<String>,
    description: String,
    default: Option<Value>,
}

fn entries(reference: &str) -> Vec<Entry> {
    let (mut entries, mut table, mut comment) = (Vec::new(), Vec::new(), Vec::new());
    for line in reference.lines() {
        if let Some(heading) = line.strip_prefix('[') {
            table = heading.trim_matches(['[', ']']).split('.').map(str::to_owned).collect();
            comment.clear();
        } else if let Some((key, default)) = key_and_default(line) {
            let path = table.iter().cloned().chain([key.to_owned()]).collect();
            entries.push(Entry { path, description: comment.join("\n"), default });
            comment.clear();
        } else if let Some(text) = line.strip_prefix("# ").filter(|text| !text.starts_with('[')) {
            comment.push(text);
        } else {
            comment.clear();
        }
    }
    entries
}

/// Returns the key that a line shows: `#key = value` shows its default, `# key = value` and `key = value` an example.
pub(super) fn key_and_default(line: &str) -> Option<(&str, Option<Value>)> {
    let shown = line.strip_prefix('#');
    let entry = shown.unwrap_or(line).trim_start();
    let (key, _) = entry.split_once(" = ")?;
    // A sentence of a comment can begin like an entry.
    let value = entry.parse::<toml::Table>().ok()?.remove(key)?;
    let is_default = shown.is_some_and(|line| !line.starts_with(' '));
    Some((key, serde_json::to_value(value).ok().filter(|_| is_default)))
}

/// Returns the schema of a property, through references to shared definitions.
fn property<'a>(schema: &'a mut Value, path: &[String]) -> Option<&'a mut Map<String, Value>> {
    let mut place = String::new();
    for step in path {
        place = resolved(schema, &place)?;
        let within = schema.pointer(&place)?;
        let (property, of_element) = (format!("/properties/{step}"), format!("/items/properties/{step}"));
        // The last one is for the name of an upstream.
        let ways = [&property, &of_element, "/additionalProperties"];
        place += ways.into_iter().find(|way| within.pointer(way).is_some_and(Value::is_object))?;
    }
    schema.pointer_mut(&place)?.as_object_mut()
}

/// Returns where the schema at a place is defined: behind references, and for lists at the schema of their elements.
fn resolved(schema: &Value, place: &str) -> Option<String> {
    let mut place = place.to_owned();
    loop {
        let within = schema.pointer(&place)?;
        if let Some(reference) = within.get("$ref").and_then(Value::as_str) {
            reference.trim_start_matches('#').clone_into(&mut place);
        } else if within.get("items").is_some() {
            place += "/items";
        } else {
            return Some(place);
        }
    }
}

/// Removes null from all types: TOML has no null, and a key that is absent is allowed anyway.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(without_null),
        Value::Object(object) => {
            object.values_mut().for_each(without_null);
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|each| each != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
                choices.retain(|each| each.get("type").is_none_or(|kind| kind != "null"));
                if let [Value::Object(only)] = choices.as_slice() {
                    let only = only.clone();
                    object.remove("anyOf");
                    object.extend(only);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> Map<String, Value> {
        let path: Vec<String> = path.split(' ').map(str::to_owned).collect();
        property(&mut schema(), &path).unwrap_or_else(|| panic!("{path:?} is not in the schema")).clone()
    }

    #[test]
    fn every_key_of_the_reference_is_described() {
        let found = entries(REFERENCE);
        assert!(found.len() > 100, "only {} keys", found.len());
        let mut schema = schema();
        for entry in found {
            // A key of a later example has no comment of its own.
            if entry.description.is_empty() {
                continue;
            }
            let property = property(&mut schema, &entry.path).unwrap_or_else(|| panic!("{entry:?}"));
            assert_eq!(property.get("description"), Some(&Value::from(entry.description)));
        }
    }

    #[test]
    fn a_key_has_its_type_its_words_and_its_default() {
        assert_eq!(at("server threads").get("type"), Some(&"integer".into()));
        assert_eq!(at("routes other_writers").get("type"), Some(&"boolean".into()));
        assert_eq!(at("upstreams docs timeout").get("default"), Some(&"30s".into()));
        let policy = at("routes policy");
        assert_eq!(
            policy.get("anyOf").and_then(|any| any.pointer("/0/enum")),
            Some(&["last-writer-wins", "optimistic", "pessimistic"].as_slice().into())
        );
        assert_eq!(schema().pointer("/additionalProperties"), Some(&false.into()));
    }
}
