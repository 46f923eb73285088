//! The paths of a document with their operations.

use http::Method;
use serde_json::Value;

use super::{
    document::ApiDocument,
    problem::{DocumentProblem, DocumentProblems},
    reference::{joined, pointer_of, reference_of},
    server::ApiServer,
};

/// The members of a path that are operations.
const METHODS: [(&str, Method); 7] = [
    ("get", Method::GET),
    ("head", Method::HEAD),
    ("put", Method::PUT),
    ("patch", Method::PATCH),
    ("post", Method::POST),
    ("delete", Method::DELETE),
    ("options", Method::OPTIONS),
];

/// The longest name of an operation that is shown in full.
const NAME_MAX: usize = 100;

/// The paths of a document, in the order of their spelling.
#[derive(Clone, Debug)]
pub struct Paths<'d> {
    /// The document.
    pub(super) document: &'d ApiDocument,
    /// The server that all paths are on, unless they say otherwise.
    pub(super) server: ApiServer,
    /// The operations, those of one path together.
    pub(super) operations: Vec<ApiOperation<'d>>,
}

/// One operation.
#[derive(Clone, Debug)]
pub(super) struct ApiOperation<'d> {
    /// The method.
    pub(super) method: Method,
    /// The path as the document spells it, without that of the server.
    pub(super) path: &'d str,
    /// The description.
    pub(super) value: &'d Value,
    /// The description of the path, with what all of its operations share.
    pub(super) item: &'d Value,
    /// The pointer to the description.
    pub(super) pointer: String,
    /// True if it is on another server than the document.
    pub(super) is_elsewhere: bool,
}

impl<'d> Paths<'d> {
    /// Reads the paths of a document, and reports each that no client could use.
    pub fn of(document: &'d ApiDocument) -> Result<Self, DocumentProblems> {
        let server = ApiServer::of(document.root()).unwrap_or_default();
        let mut found = Self { document, server, operations: Vec::new() };
        let mut problems = Vec::new();
        // A document of version 3.1 may describe nothing but webhooks.
        match document.root().get("paths") {
            None => {}
            Some(Value::Object(paths)) => {
                for (path, item) in paths.iter().filter(|(path, _)| !path.starts_with("x-")) {
                    if let Err(problem) = found.add(path, item) {
                        problems.push(problem);
                    }
                }
            }
            Some(_) => problems.push(DocumentProblem::at(
                "/paths",
                "paths is no object",
                "write the paths as its members, as in /documents/{id}: {get: ...}",
            )),
        }
        if problems.is_empty() { Ok(found) } else { Err(DocumentProblems::new(document.name(), problems)) }
    }

    fn add(&mut self, path: &'d str, item: &'d Value) -> Result<(), DocumentProblem> {
        let mut pointer = joined("/paths", path);
        if !path.starts_with('/') {
            return Err(DocumentProblem::at(&pointer, "a path begins with a slash", format!("write \"/{path}\"")));
        }
        // One step finds the end of a chain of references; keys beside a reference count too.
        if let Some(reference) = reference_of(item) {
            pointer = pointer_of(reference).unwrap_or(pointer);
        }
        let Some(shared) = self.document.resolved(item) else { return Ok(()) };
        if !shared.is_object() {
            let hint = "write its operations as members, as in get: {...}";
            return Err(DocumentProblem::at(&pointer, "the description of a path is no object", hint));
        }
        for (name, method) in METHODS {
            let Some(value) = shared.get(name) else { continue };
            let pointer = joined(&pointer, name);
            if !value.is_object() {
                let hint = "write an object with its responses";
                return Err(DocumentProblem::at(&pointer, "the description of an operation is no object", hint));
            }
            let own = ApiServer::of(value).or_else(|| ApiServer::of(shared));
            let is_elsewhere = own.is_some_and(|own| own != self.server);
            self.operations.push(ApiOperation { method, path, value, item: shared, pointer, is_elsewhere });
        }
        Ok(())
    }

    /// The name of the document for readers, with its version.
    pub(super) fn title(&self) -> String {
        let text = |name| self.document.root().pointer(name).and_then(Value::as_str).unwrap_or_default();
        let title = printable(text("/info/title"));
        let version = printable(text("/info/version"));
        format!("{title:?} {version}").trim_end().to_owned()
    }
}

impl ApiOperation<'_> {
    /// True if it changes something.
    pub(super) fn is_write(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD | Method::OPTIONS)
    }

    /// How reports name it: `updatePet (PUT /pets/{id})`.
    pub(super) fn label(&self) -> String {
        let line = format!("{} {}", self.method, printable(self.path));
        match self.value.get("operationId").and_then(Value::as_str) {
            Some(id) => format!("{} ({line})", printable(id)),
            None => line,
        }
    }
}

/// A text of a document as part of a line, of a bounded length.
pub(super) fn printable(text: &str) -> String {
    let plain = text.chars().map(|each| if each.is_control() { ' ' } else { each });
    let mut shown: String = plain.clone().take(NAME_MAX).collect();
    if plain.count() > NAME_MAX {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(paths: &str) -> ApiDocument {
        ApiDocument::parse("api.yaml", &format!("openapi: 3.1.0\n{paths}")).expect("a document")
    }

    fn labels(text: &str) -> Vec<String> {
        let document = document(text);
        Paths::of(&document).expect("paths").operations.iter().map(ApiOperation::label).collect()
    }

    #[test]
    fn operations_have_names() {
        let text = "paths:\n  x-a: 1\n  /a: {get: {}, put: {operationId: putA}, parameters: []}\n  /b: {$ref: '#/c'}\n\
                    c: {delete: {operationId: \"d\\n1\"}}\n";
        assert_eq!(labels(text), ["GET /a", "putA (PUT /a)", "d 1 (DELETE /b)"]);
        assert_eq!(labels("webhooks: {}\n"), Vec::<String>::new());
        let elsewhere = labels("paths: {/a: {$ref: 'a.yaml'}}\n");
        assert_eq!(elsewhere, Vec::<String>::new(), "another document has it");
    }

    #[test]
    fn other_servers_are_seen() {
        let text = "servers: [{url: 'https://a.example/v1'}]\npaths:\n  /a: {get: {}, put: {servers: [{url: 'https://b.example'}]}}\n  \
                    /b: {servers: [{url: '/v2'}], get: {}}\n  /c: {servers: [{url: 'https://a.example/v1/'}], get: {}}\n";
        let document = document(text);
        let paths = Paths::of(&document).expect("paths");
        let elsewhere: Vec<bool> = paths.operations.iter().map(|operation| operation.is_elsewhere).collect();
        assert_eq!(elsewhere, [false, true, true, false]);
    }

    #[test]
    fn what_is_no_path_is_a_problem() {
        for (text, expected) in [
            ("paths: []\n", "api.yaml#/paths: paths is no object\n   hint: write the paths"),
            ("paths: {a: {}}\n", "api.yaml#/paths/a: a path begins with a slash\n   hint: write \"/a\""),
            ("paths: {/a: 1}\n", "api.yaml#/paths/~1a: the description of a path is no object"),
            ("paths: {/a: {get: 1}}\n", "api.yaml#/paths/~1a/get: the description of an operation is no object"),
        ] {
            let document = document(text);
            let reported = Paths::of(&document).expect_err("a problem").to_string();
            assert!(reported.starts_with(expected), "{reported}");
        }
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(printable(&"a".repeat(200)).chars().count(), NAME_MAX + 1);
        assert_eq!(printable("a\tb\u{85}"), "a b ");
    }
}
