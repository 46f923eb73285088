//! A store of JSON documents in containers, as Cosmos DB shows them to its SDK, that never looks at a condition. A POST to
//! the documents creates or, if a field says so, replaces the one that its body names.

use std::{collections::BTreeMap, sync::Mutex};

use serde_json::{Map, Value, json};

use super::backend::{Answer, Backend, Request};

const UPSERT: &str = "x-ms-documentdb-is-upsert";
const QUERY: &str = "x-ms-documentdb-isquery";
const PARTITION: &str = "x-ms-documentdb-partitionkey";

/// Documents by their paths and partitions.
#[derive(Default)]
struct Documents {
    documents: BTreeMap<(String, String), Map<String, Value>>,
    writes: u64,
}

/// Starts the store.
pub async fn start() -> Backend {
    let backend = Backend::start().await;
    let documents = Mutex::new(Documents::default());
    backend.serve(move |request| documents.lock().unwrap().answer(request));
    backend
}

fn content(request: &Request) -> Map<String, Value> {
    serde_json::from_slice(&request.body).expect("an object")
}

fn json(status: u16, content: &Value) -> Answer {
    Answer::status(status).header("Content-Type", "application/json").body(content.to_string())
}

fn shown(status: u16, document: &Map<String, Value>) -> Answer {
    let tag = document["_etag"].as_str().expect("a tag");
    json(status, &Value::Object(document.clone())).header("ETag", tag).header("X-Document-Etag", tag)
}

/// The account, a database, a container or its ranges, as the SDK asks for them before it asks for documents.
fn described(path: &str) -> Answer {
    let described = match path.rsplit('/').nth(1) {
        _ if path.is_empty() => json!({
            "id": "local",
            "writableLocations": [],
            "readableLocations": [],
            "userConsistencyPolicy": { "defaultConsistencyLevel": "Session" },
        }),
        Some("colls") => {
            json!({ "id": "c", "_rid": "AAAAAAAAAAA=", "partitionKey": { "paths": ["/kind"], "kind": "Hash" } })
        }
        _ if path.ends_with("/pkranges") => json!({
            "PartitionKeyRanges": [{ "id": "0", "minInclusive": "", "maxExclusive": "FF", "status": "online" }],
            "_count": 1,
        }),
        _ => json!({ "id": "d", "_rid": "AAAAAA==" }),
    };
    json(200, &described)
}

impl Documents {
    fn answer(&mut self, request: &Request) -> Answer {
        let path = request.target.split('?').next().unwrap_or_default().trim_end_matches('/').to_owned();
        let says = |name: &str| request.headers.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let partition = request.headers.get(PARTITION).unwrap_or_default().to_owned();
        let Some((_, in_documents)) = path.split_once("/docs") else { return described(&path) };
        let of_list = in_documents.is_empty();
        match request.method.as_str() {
            "GET" if of_list => self.list(),
            "POST" if says(QUERY) => self.list(),
            "POST" => {
                let document = content(request);
                let name = document.get("id").map_or_else(|| format!("auto-{}", self.writes), name);
                let place = (format!("{path}/{name}"), partition);
                if self.documents.contains_key(&place) && !says(UPSERT) {
                    return json(409, &json!({ "code": "Conflict" }));
                }
                self.write(place, document)
            }
            "GET" | "HEAD" => match self.documents.get(&(path, partition)) {
                Some(document) => shown(200, document),
                None => json(404, &json!({ "code": "NotFound" })),
            },
            "DELETE" => match self.documents.remove(&(path, partition)) {
                Some(_) => Answer::status(204).applied(),
                None => json(404, &json!({ "code": "NotFound" })),
            },
            _ => self.write((path, partition), content(request)),
        }
    }

    fn list(&self) -> Answer {
        let documents: Vec<_> = self.documents.values().collect();
        json(200, &json!({ "_rid": "AAAAAAAAAAA=", "_count": documents.len(), "Documents": documents }))
    }

    fn write(&mut self, place: (String, String), mut document: Map<String, Value>) -> Answer {
        self.writes += 1;
        document.insert("_etag".to_owned(), format!("\"{:08}\"", self.writes).into());
        let is_new = self.documents.insert(place, document.clone()).is_none();
        shown(if is_new { 201 } else { 200 }, &document).applied()
    }
}

/// The name of a document, as a segment of a path.
fn name(id: &Value) -> String {
    let text = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    percent_encoding::utf8_percent_encode(&text, percent_encoding::NON_ALPHANUMERIC).to_string()
}
