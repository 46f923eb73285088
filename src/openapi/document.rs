//! A whole OpenAPI document, read and checked.

use serde_json::{Map, Value};

use super::{
    problem::{DocumentProblem, DocumentProblems, PlaceOfProblem},
    reference::{BadReference, joined, reference_of, resolve},
};

/// The largest document: the largest public ones have half of it.
pub const SIZE_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The most values of a document in YAML, with those that its aliases repeat. The largest public ones have a fifth of it.
const YAML_VALUES_MAX: usize = 10_000_000;

/// The deepest nesting of a document in YAML. The largest public ones have half of it, and each level takes stack.
const YAML_DEPTH_MAX: usize = 64;

/// The most problems that are reported: one mistake of a generator can be in each operation.
const PROBLEMS_MAX: usize = 20;

/// Members that hold data, in which nothing is a reference.
const DATA: [&str; 5] = ["example", "examples", "default", "enum", "const"];

/// An OpenAPI document of version 3.0 or 3.1. Each reference within it leads to something.
#[derive(Clone, Debug)]
pub struct ApiDocument {
    name: String,
    root: Value,
    has_external_references: bool,
}

impl ApiDocument {
    /// Reads a document in JSON or YAML, and reports its problems under `name`.
    pub fn parse(name: &str, text: &str) -> Result<Self, DocumentProblems> {
        let problems = |problems| DocumentProblems::new(name, problems);
        let root = read(text).map_err(|problem| problems(vec![problem]))?;
        check_version(&root).map_err(|problem| problems(vec![problem]))?;
        let mut references = References { root: &root, problems: Vec::new(), found_external: false };
        references.look("", &root);
        let References { problems: bad, found_external, .. } = references;
        if !bad.is_empty() {
            return Err(problems(bad));
        }
        Ok(Self { name: name.to_owned(), root, has_external_references: found_external })
    }

    /// The name under which problems are reported.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The document as a whole.
    pub(super) fn root(&self) -> &Value {
        &self.root
    }

    /// True if some of it is in other documents.
    pub(super) fn has_external_references(&self) -> bool {
        self.has_external_references
    }

    /// Follows the references from a value; `None` if they leave the document.
    pub(super) fn resolved<'d>(&'d self, value: &'d Value) -> Option<&'d Value> {
        resolve(&self.root, value).ok()
    }
}

/// Reads a text as JSON if it begins as such, or else as YAML. A text that is JSON is not always YAML.
fn read(text: &str) -> Result<Value, DocumentProblem> {
    let at = |line, column, message: String| {
        let place = PlaceOfProblem::Line(line, column);
        DocumentProblem::new(place, message, "write one document in JSON or YAML, as OpenAPI 3 describes it")
    };
    if text.trim_start_matches('\u{feff}').trim_start().starts_with('{') {
        return serde_json::from_str(text.trim_start_matches('\u{feff}'))
            .map_err(|error| at(error.line() as u64, error.column() as u64, format!("this is no JSON: {error}")));
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: YAML_DEPTH_MAX,
            max_events: YAML_VALUES_MAX,
            max_nodes: YAML_VALUES_MAX,
            max_documents: 1,
        },
        emit_comments: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let (line, column) = error.location().map_or((1, 1), |place| (place.line(), place.column()));
        at(line, column, format!("this is no YAML: {}", reason(&error.to_string())))
    })
}

/// Returns the text of an error of the YAML reader, without the place and the excerpt.
fn reason(error: &str) -> &str {
    let line = error.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let placed = line.strip_prefix("line ").and_then(|line| line.split_once(": "));
    placed.map_or(line, |(_, reason)| reason)
}

fn check_version(root: &Value) -> Result<(), DocumentProblem> {
    let version = root.get("openapi").and_then(Value::as_str);
    if version.is_some_and(|version| version.starts_with("3.0") || version.starts_with("3.1")) {
        return Ok(());
    }
    let old = root.get("swagger").is_some();
    Err(match version {
        Some(version) => {
            let message = format!("openapi is {version:?}");
            DocumentProblem::at("/openapi", message, "write a document of version 3.0 or 3.1, as in openapi: 3.1.0")
        }
        None if old => DocumentProblem::at(
            "/swagger",
            "this is a document of version 2",
            "convert it to version 3 first: npx swagger2openapi FILE",
        ),
        None => DocumentProblem::new(
            PlaceOfProblem::Whole,
            "it is no OpenAPI document: it has no openapi",
            "write its version at the top, as in openapi: 3.1.0",
        ),
    })
}

/// The search for references that lead to nothing.
struct References<'d> {
    root: &'d Value,
    problems: Vec<DocumentProblem>,
    found_external: bool,
}

impl References<'_> {
    /// Looks at a value and all below it. The depth is that of the text, which its reader bounds.
    fn look(&mut self, pointer: &str, value: &Value) {
        if self.problems.len() >= PROBLEMS_MAX {
            return;
        }
        match value {
            Value::Object(members) => self.look_at_members(pointer, value, members),
            Value::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    self.look(&joined(pointer, &index.to_string()), element);
                }
            }
            _ => {}
        }
    }

    fn look_at_members(&mut self, pointer: &str, value: &Value, members: &Map<String, Value>) {
        if reference_of(value).is_some() {
            self.judge(pointer, value);
            return;
        }
        // The names of these are free, and no data of theirs is one of the document.
        let is_free = ["/properties", "/patternProperties", "/$defs"].iter().any(|end| pointer.ends_with(end));
        for (name, member) in members {
            let is_data = DATA.contains(&name.as_str()) || name.starts_with("x-");
            if is_free || !is_data {
                self.look(&joined(pointer, name), member);
            }
        }
    }

    fn judge(&mut self, pointer: &str, value: &Value) {
        let problem = match resolve(self.root, value) {
            Ok(_) => return,
            Err(BadReference::External(_)) => {
                self.found_external = true;
                return;
            }
            Err(BadReference::Missing(reference)) => DocumentProblem::at(
                pointer,
                format!("$ref is {reference:?}, and the document has nothing there"),
                "write what it names, or correct the pointer",
            ),
            Err(BadReference::Circular(reference)) => DocumentProblem::at(
                pointer,
                format!("$ref is {reference:?}, which leads back to itself"),
                "write the thing itself at one of these places",
            ),
        };
        self.problems.push(problem);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> String {
        ApiDocument::parse("api.yaml", text).expect_err("it has problems").to_string()
    }

    #[test]
    fn json_and_yaml_are_one() {
        let yaml = "openapi: 3.1.0\npaths:\n  /a:\n    get:\n      responses:\n        200: {description: ok}\n";
        let json = r#"{"openapi":"3.1.0","paths":{"/a":{"get":{"responses":{"200":{"description":"ok"}}}}}}"#;
        let read = |text| ApiDocument::parse("d", text).expect("a document").root().clone();
        assert_eq!(read(yaml), read(json));
        assert_eq!(read(&format!("\u{feff}\n{json}").replacen('\n', "", 1)), read(json));
    }

    #[test]
    fn problems_tell_their_place_and_what_to_write() {
        for (text, expected) in [
            ("openapi: 3.1.0\npaths: [\n", "api.yaml:2:8: this is no YAML: unclosed bracket"),
            ("{\"openapi\": \"3.1.0\",\n \"paths\": ]}", "api.yaml:2:11: this is no JSON: expected value"),
            ("openapi: 3.1.0\na: 1\na: 2\n", "api.yaml:3:1: this is no YAML: "),
            ("swagger: '2.0'\n", "api.yaml#/swagger: this is a document of version 2\n   hint: convert it"),
            ("openapi: 4.0.0\n", "api.yaml#/openapi: openapi is \"4.0.0\"\n   hint: write a document of version 3.0"),
            ("info: {}\n", "api.yaml: it is no OpenAPI document: it has no openapi\n   hint: write its version"),
            ("- 1\n", "api.yaml: it is no OpenAPI document"),
            (
                "openapi: 3.0.0\npaths: {/a~/b: {$ref: '#/nowhere'}}\n",
                "api.yaml#/paths/~1a~0~1b: $ref is \"#/nowhere\", and the document has nothing there\n   hint: write what",
            ),
            ("openapi: 3.0.0\na: {$ref: '#/a'}\n", "api.yaml#/a: $ref is \"#/a\", which leads back to itself\n   hint"),
        ] {
            let reported = problems(text);
            assert!(reported.starts_with(expected), "{text}\n{reported}");
            assert!(reported.ends_with("\n1 problem"), "{reported}");
        }
    }

    #[test]
    fn only_some_of_many_problems_are_told() {
        let many = (0..100).map(|each| format!("  /{each}: {{$ref: '#/nowhere'}}\n")).collect::<Vec<_>>().concat();
        assert!(problems(&format!("openapi: 3.0.0\npaths:\n{many}")).ends_with("\n20 problems"));
    }

    #[test]
    fn data_has_no_references() {
        let text = "openapi: 3.1.0\nexample: {$ref: '#/no'}\nx-a: {$ref: '#/no'}\nb: {default: {$ref: '#/no'}}\n";
        let document = ApiDocument::parse("d", text).expect("nothing refers to anything");
        assert!(!document.has_external_references());
        let named = "openapi: 3.1.0\nproperties: {default: {$ref: '#/no'}}\n";
        assert!(problems(named).contains("#/properties/default: $ref"), "a property may have that name");
        let elsewhere = ApiDocument::parse("d", "openapi: 3.1.0\na: {$ref: 'b.yaml'}\n").expect("it is a document");
        assert!(elsewhere.has_external_references());
    }

    #[test]
    fn aliases_and_depth_are_bounded() {
        let mut bomb = "openapi: 3.1.0\na0: &a0 [1,1,1,1,1,1,1,1,1,1]\n".to_owned();
        for each in 1..12 {
            let before = format!("*a{},", each - 1).repeat(10);
            bomb.extend([format!("a{each}: &a{each} [{before}]\n")]);
        }
        assert!(problems(&bomb).contains("this is no YAML: "));
        for (open, close) in [("[", "]"), ("{a: ", "}")] {
            let deep = format!("openapi: 3.1.0\na: {}1{}\n", open.repeat(1_000), close.repeat(1_000));
            assert!(problems(&deep).contains("this is no YAML: "));
        }
        let deep = format!("{{\"openapi\":\"3.1.0\",\"a\":{}1{}}}", "[".repeat(1_000), "]".repeat(1_000));
        assert!(problems(&deep).contains("this is no JSON: "));
    }
}
