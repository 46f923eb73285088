//! The facts about requests and answers in the description of an operation.

use serde_json::{Map, Value};

use super::{document::ApiDocument, paths::ApiOperation, schema};

/// Media types of bodies that have no end, or come in pieces.
const STREAMS: [&str; 6] = [
    "text/event-stream",
    "application/x-ndjson",
    "application/jsonl",
    "application/json-seq",
    "application/json;stream=",
    "multipart/x-mixed-replace",
];

/// The place of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterPlace {
    Header,
    Query,
}

/// An operation with its document.
#[derive(Clone, Copy, Debug)]
pub(super) struct OperationFacts<'d, 'o> {
    pub(super) document: &'d ApiDocument,
    pub(super) operation: &'o ApiOperation<'d>,
}

impl<'d> OperationFacts<'d, '_> {
    /// The answers of success: their statuses and descriptions.
    pub(super) fn successes(self) -> impl Iterator<Item = (&'d str, &'d Value)> {
        let responses = self.operation.value.get("responses").and_then(Value::as_object);
        let is_success = |status: &str| status.starts_with('2') && status != "204";
        responses
            .into_iter()
            .flat_map(Map::iter)
            .filter(move |(status, _)| is_success(status))
            .filter_map(move |(status, response)| Some((status.as_str(), self.document.resolved(response)?)))
    }

    /// True if a status is among the answers.
    pub(super) fn has_status(self, status: &str) -> bool {
        self.operation.value.pointer(&format!("/responses/{status}")).is_some()
    }

    /// True if an answer of success has this field.
    pub(super) fn answers_with_field(self, name: &str) -> bool {
        let names = self.successes().filter_map(|(_, response)| response.get("headers")?.as_object());
        names.flat_map(Map::keys).any(|field| field.eq_ignore_ascii_case(name))
    }

    /// True if a request has this parameter.
    pub(super) fn has_parameter(self, place: ParameterPlace, name: &str) -> bool {
        let word = if place == ParameterPlace::Header { "header" } else { "query" };
        let lists = [self.operation.value, self.operation.item].into_iter().filter_map(|owner| owner.get("parameters"));
        let mut parameters =
            lists.filter_map(Value::as_array).flatten().filter_map(|parameter| self.document.resolved(parameter));
        parameters.any(|parameter| {
            let own = parameter.get("name").and_then(Value::as_str).unwrap_or_default();
            let is_same = if place == ParameterPlace::Header { own.eq_ignore_ascii_case(name) } else { own == name };
            is_same && parameter.get("in").and_then(Value::as_str) == Some(word)
        })
    }

    /// The schema of the JSON that an answer of success has.
    pub(super) fn answer_schema(self) -> Option<&'d Value> {
        self.successes().find_map(|(_, response)| json_schema(response.get("content")?))
    }

    /// The schema of the JSON that a request has.
    pub(super) fn request_schema(self) -> Option<&'d Value> {
        json_schema(self.request_content()?)
    }

    /// True if the body of a request may be JSON alone.
    pub(super) fn takes_json_alone(self) -> bool {
        self.request_media_types().all(is_json)
    }

    /// True if a request is a form of several parts.
    pub(super) fn takes_multipart(self) -> bool {
        self.request_media_types().any(|media_type| media_type.starts_with("multipart/"))
    }

    /// True if a request or an answer is a file.
    pub(super) fn carries_file(self) -> bool {
        let answers = self.successes().filter_map(|(_, response)| response.get("content"));
        answers.chain(self.request_content()).filter_map(Value::as_object).flatten().any(|(media_type, media)| {
            let is_binary = |schema| schema::is_binary(self.document, schema);
            media_type.starts_with("application/octet-stream") || media.get("schema").is_some_and(is_binary)
        })
    }

    /// True if an answer may have no end.
    pub(super) fn streams(self) -> bool {
        let answers = self.successes().filter_map(|(_, response)| response.get("content")?.as_object());
        let is_stream = |media_type: &String| {
            let plain: String = media_type.chars().filter(|each| !each.is_whitespace()).collect();
            STREAMS.iter().any(|stream| plain.starts_with(stream))
        };
        answers.flat_map(Map::keys).any(is_stream)
    }

    fn request_media_types(self) -> impl Iterator<Item = &'d str> {
        let content = self.request_content().and_then(Value::as_object);
        content.into_iter().flat_map(Map::keys).map(String::as_str)
    }

    fn request_content(self) -> Option<&'d Value> {
        self.document.resolved(self.operation.value.get("requestBody")?)?.get("content")
    }
}

/// The schema of the first body that is JSON.
fn json_schema(content: &Value) -> Option<&Value> {
    content.as_object()?.iter().find(|(media_type, _)| is_json(media_type))?.1.get("schema")
}

fn is_json(media_type: &str) -> bool {
    let name = media_type.split(';').next().unwrap_or_default().trim();
    name == "application/json" || name.ends_with("+json") || name == "*/*"
}

#[cfg(test)]
mod tests {
    use super::{super::paths::Paths, *};

    const TEXT: &str = "
openapi: 3.1.0
paths:
  /a:
    parameters: [{$ref: '#/components/parameters/Match'}]
    get:
      parameters: [{name: rev, in: query}]
      responses:
        '200':
          headers: {etag: {}}
          content:
            text/plain: {schema: {type: string}}
            application/hal+json; charset=utf-8: {schema: {type: object}}
            application/json; stream=watch: {}
        '404': {headers: {X-Reason: {}}}
    put:
      requestBody: {$ref: '#/components/requestBodies/Part'}
      responses: {'204': {headers: {X-None: {}}}, 2XX: {content: {image/png: {schema: {format: binary}}}}}
components:
  parameters: {Match: {name: if-match, in: header}}
  requestBodies: {Part: {content: {application/json: {schema: {type: array}}, multipart/form-data: {}}}}
";

    #[test]
    fn a_description_tells_of_requests_and_answers() {
        let document = ApiDocument::parse("d", TEXT).expect("a document");
        let paths = Paths::of(&document).expect("paths");
        let [get, put] =
            [0, 1].map(|index| OperationFacts { document: &document, operation: &paths.operations[index] });
        assert!(get.answers_with_field("ETag") && !get.answers_with_field("X-Reason"));
        assert!(!put.answers_with_field("X-None"), "an answer without content has no version of it");
        assert!(get.has_status("404") && !get.has_status("412"));
        assert!(put.has_parameter(ParameterPlace::Header, "If-Match"));
        assert!(get.has_parameter(ParameterPlace::Query, "rev") && !get.has_parameter(ParameterPlace::Header, "rev"));
        assert!(!get.has_parameter(ParameterPlace::Query, "Rev"));
        assert_eq!(get.answer_schema().and_then(|schema| schema["type"].as_str()), Some("object"));
        assert_eq!(put.request_schema().and_then(|schema| schema["type"].as_str()), Some("array"));
        assert!(put.takes_multipart() && !put.takes_json_alone() && get.takes_json_alone());
        assert!(put.carries_file() && !get.carries_file());
        assert!(get.streams() && !put.streams());
    }
}
