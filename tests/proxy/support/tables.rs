//! A service for entities of tables that takes each write for "overwrite any state", as a plain JSON store does.

use std::{collections::BTreeMap, sync::Mutex};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use sha2::Sha256;

use super::backend::{Answer, Backend, Request};

/// Entities by their decoded paths, with the number of the write that made them what they are.
#[derive(Default)]
struct Tables {
    entities: BTreeMap<String, (u64, Map<String, Value>)>,
    writes: u64,
}

/// Starts the service.
pub async fn start() -> Backend {
    let backend = Backend::start().await;
    let tables = Mutex::new(Tables::default());
    backend.serve(move |request| tables.lock().unwrap().answer(request));
    backend
}

/// The account of a service that checks signatures, with its key in Base64.
pub const ACCOUNT: (&str, &str) = ("account", "a2V5");

/// Starts the service, which checks the signature and the tag of each request, as Azure's own does.
pub async fn start_checking() -> Backend {
    let backend = Backend::start().await;
    let tables = Mutex::new(Tables::default());
    backend.serve(move |request| {
        let mut tables = tables.lock().unwrap();
        if !is_signed(request) {
            return error(403, "AuthenticationFailed");
        }
        match (request.header("if-match"), tables.tag_of(&decoded_path(request))) {
            (None | Some("*"), Some(_)) | (None, None) => tables.answer(request),
            (Some(named), Some(current)) if named == current => tables.answer(request),
            (Some(_), Some(_)) => error(412, "UpdateConditionNotSatisfied"),
            (Some(_), None) => error(404, "ResourceNotFound"),
        }
    });
    backend
}

/// True if a request has the `SharedKey` of the account. The client signs its method, and no condition.
fn is_signed(request: &Request) -> bool {
    let (account, key) = ACCOUNT;
    let field = |name: &str| request.header(name).unwrap_or_default();
    let path = request.target.split('?').next().unwrap_or_default();
    let signed = [&request.method, field("content-md5"), field("content-type"), field("x-ms-date")].join("\n");
    let key = BASE64_STANDARD.decode(key).expect("a key");
    let mut code = Hmac::<Sha256>::new_from_slice(&key).expect("a key of any length");
    code.update(format!("{signed}\n/{account}{path}").as_bytes());
    let signature = BASE64_STANDARD.encode(code.finalize().into_bytes());
    field("authorization") == format!("SharedKey {account}:{signature}")
}

fn error(status: u16, code: &str) -> Answer {
    let error = json!({ "odata.error": { "code": code, "message": { "lang": "en-US", "value": "No." } } });
    Answer::status(status).header("Content-Type", "application/json").body(error.to_string())
}

fn decoded_path(request: &Request) -> String {
    let path = request.target.split('?').next().unwrap_or_default();
    percent_decode_str(path.trim_end_matches('/')).decode_utf8().expect("UTF-8").into_owned()
}

fn tag(write: u64) -> String {
    format!("W/\"datetime'2026-11-21T10%3A00%3A00.{write:07}Z'\"")
}

/// An entity as the SDKs read it: its tag is in it too.
fn shown((write, properties): &(u64, Map<String, Value>)) -> Value {
    let mut shown = properties.clone();
    shown.insert("odata.etag".to_owned(), tag(*write).into());
    shown.into()
}

fn content(request: &Request) -> Map<String, Value> {
    serde_json::from_slice(&request.body).expect("an object")
}

impl Tables {
    /// Never looks at a condition.
    fn answer(&mut self, request: &Request) -> Answer {
        let path = decoded_path(request);
        let is_entity = path.ends_with("')") && !path.contains("Tables(");
        match request.header("x-http-method").unwrap_or(&request.method) {
            "GET" | "HEAD" if !is_entity => {
                let value: Vec<_> = self.entities.values().map(shown).collect();
                Answer::status(200)
                    .header("Content-Type", "application/json")
                    .body(json!({ "value": value }).to_string())
            }
            "GET" | "HEAD" => match self.entities.get(&path) {
                Some(entity) => Answer::status(200)
                    .header("ETag", &tag(entity.0))
                    .header("Content-Type", "application/json")
                    .body(shown(entity).to_string()),
                None => Answer::status(404),
            },
            "POST" if path.ends_with("/Tables") => json_created(&content(request)).applied(),
            "POST" => self.insert(&path, content(request)),
            "DELETE" if is_entity && self.entities.remove(&path).is_none() => Answer::status(404),
            // A plain store says 200, and tells something.
            "DELETE" => Answer::status(200).body("gone").applied(),
            "PUT" => self.write(path, content(request)),
            _ => {
                let mut merged = self.entities.get(&path).map(|(_, before)| before.clone()).unwrap_or_default();
                merged.extend(content(request));
                self.write(path, merged)
            }
        }
    }

    fn tag_of(&self, path: &str) -> Option<String> {
        self.entities.get(path).map(|(write, _)| tag(*write))
    }

    fn insert(&mut self, table: &str, entity: Map<String, Value>) -> Answer {
        let key = |name: &str| entity[name].as_str().expect("a key").replace('\'', "''");
        let path = format!("{table}(PartitionKey='{}',RowKey='{}')", key("PartitionKey"), key("RowKey"));
        if self.entities.contains_key(&path) {
            return Answer::status(409);
        }
        self.writes += 1;
        let answer = json_created(&entity).header("ETag", &tag(self.writes)).header("Location", &path);
        self.entities.insert(path, (self.writes, entity));
        answer.applied()
    }

    fn write(&mut self, path: String, entity: Map<String, Value>) -> Answer {
        self.writes += 1;
        self.entities.insert(path, (self.writes, entity));
        Answer::status(200).header("ETag", &tag(self.writes)).body("written").applied()
    }
}

fn json_created(content: &Map<String, Value>) -> Answer {
    Answer::status(201)
        .header("Content-Type", "application/json")
        .body(serde_json::to_string(content).expect("an object"))
}
