//! The source of a resource's tags, if a document shows it.

use super::{
    facts::{OperationFacts, ParameterPlace},
    schema,
};

/// Members that name a version, in the order of trust. The types that they must have keep out names such as "1.2.0".
const VERSIONS: [(&str, &[&str]); 14] = [
    ("/metadata/resourceVersion", &["string", "integer"]),
    ("/_rev", &["string", "integer"]),
    ("/_etag", &["string", "integer"]),
    ("/@odata.etag", &["string"]),
    ("/etag", &["string", "integer"]),
    ("/eTag", &["string", "integer"]),
    ("/resourceVersion", &["string", "integer"]),
    ("/lock_version", &["integer"]),
    ("/lockVersion", &["integer"]),
    ("/row_version", &["string", "integer"]),
    ("/rowVersion", &["string", "integer"]),
    ("/revision", &["integer"]),
    ("/version", &["integer"]),
    ("/meta/version", &["integer"]),
];

/// The tags of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TagChoice {
    /// The value of `etag`; `None` for the default.
    pub(super) etag: Option<String>,
    /// The values of `precondition`.
    pub(super) precondition: Vec<String>,
    /// Why, as a sentence.
    pub(super) reason: Option<String>,
}

/// Chooses the tags of a resource by the operation that reads it, and those that write it.
pub(super) fn choose(read: OperationFacts<'_, '_>, writes: &[OperationFacts<'_, '_>]) -> TagChoice {
    let judges = |write: &&OperationFacts<'_, '_>| write.has_parameter(ParameterPlace::Header, "If-Match");
    let judge = writes.iter().find(judges);
    if read.answers_with_field("ETag") {
        let (etag, reason) = match judge {
            Some(write) => {
                let method = &write.operation.method;
                ("delegate", format!("{} answers with ETag, and {method} takes If-Match.", read.operation.method))
            }
            None => ("upstream", format!("{} answers with ETag.", read.operation.method)),
        };
        return TagChoice { etag: Some(etag.to_owned()), reason: Some(reason), ..TagChoice::default() };
    }
    let Some((pointer, tokens)) = version_member(read) else { return TagChoice::default() };
    let mut precondition = Vec::new();
    let sends = |write: &OperationFacts<'_, '_>| {
        write.request_schema().is_some_and(|schema| schema::member(write.document, schema, &tokens).is_some())
    };
    if writes.iter().any(sends) {
        precondition.push(format!("json:{pointer}"));
    }
    let names = [tokens.last().copied().unwrap_or_default(), pointer.trim_start_matches(['/', '_', '@'])];
    for name in names.iter().filter(|name| !name.contains('/')) {
        let is_sent = writes.iter().any(|write| write.has_parameter(ParameterPlace::Query, name));
        let source = format!("query:{name}");
        if is_sent && !precondition.contains(&source) {
            precondition.push(source);
        }
    }
    let sent = if precondition.is_empty() { "" } else { ", and writes send it back" };
    let reason = format!("What {} answers has {pointer}{sent}.", read.operation.method);
    TagChoice { etag: Some(format!("json:{pointer}")), precondition, reason: Some(reason) }
}

/// The member of the representation that names its version.
fn version_member(read: OperationFacts<'_, '_>) -> Option<(&'static str, Vec<&'static str>)> {
    let representation = read.answer_schema()?;
    VERSIONS.iter().find_map(|(pointer, types)| {
        let tokens: Vec<&str> = pointer.split('/').skip(1).collect();
        let member = schema::member(read.document, representation, &tokens)?;
        schema::is_of_type(read.document, member, types).then_some((*pointer, tokens))
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::{document::ApiDocument, paths::Paths},
        *,
    };

    /// The tags of a resource whose GET answers so, and whose PUT has these members.
    fn chosen(response: &str, put: &str) -> TagChoice {
        let text =
            format!("openapi: 3.1.0\npaths: {{/a: {{get: {{responses: {{'200': {response}}}}}, put: {put}}}}}\n");
        let document = ApiDocument::parse("d", &text).expect("a document");
        let paths = Paths::of(&document).expect("paths");
        let facts: Vec<_> =
            paths.operations.iter().map(|operation| OperationFacts { document: &document, operation }).collect();
        choose(facts[0], &facts[1..])
    }

    fn content(schema: &str) -> String {
        format!("{{content: {{application/json: {{schema: {{properties: {{{schema}}}}}}}}}}}")
    }

    #[test]
    fn a_document_tells_where_tags_come_from() {
        let if_match = "{parameters: [{name: If-Match, in: header}]}";
        let revision = "_rev: {type: string}";
        let query = "{parameters: [{name: rev, in: query}]}";
        let in_body = format!("{{requestBody: {}}}", content(revision));
        let meta = "metadata: {properties: {resourceVersion: {type: string}}}, version: {type: integer}";
        for (response, put, etag, precondition) in [
            ("{headers: {ETag: {}}}".to_owned(), "{}", Some("upstream"), vec![]),
            ("{headers: {ETag: {}}}".to_owned(), if_match, Some("delegate"), vec![]),
            ("{}".to_owned(), if_match, None, vec![]),
            (content("version: {type: integer}"), "{}", Some("json:/version"), vec![]),
            (content("version: {type: string}"), "{}", None, vec![]),
            (content(revision), &in_body, Some("json:/_rev"), vec!["json:/_rev"]),
            (content(revision), query, Some("json:/_rev"), vec!["query:rev"]),
            (content(meta), "{}", Some("json:/metadata/resourceVersion"), vec![]),
            (content("'@odata.etag': {type: string}"), "{}", Some("json:/@odata.etag"), vec![]),
            (content("name: {type: string}"), "{}", None, vec![]),
        ] {
            let choice = chosen(&response, put);
            assert_eq!(choice.etag.as_deref(), etag, "{response} {put}");
            assert_eq!(choice.precondition, precondition, "{response} {put}");
            assert_eq!(choice.reason.is_some(), etag.is_some(), "{response} {put}");
        }
    }

    #[test]
    fn the_reason_names_what_the_document_says() {
        let choice =
            chosen(&content("lock_version: {type: integer}"), "{parameters: [{name: lock_version, in: query}]}");
        assert_eq!(choice.reason.as_deref(), Some("What GET answers has /lock_version, and writes send it back."));
        assert_eq!(choice.precondition, ["query:lock_version"]);
    }
}
