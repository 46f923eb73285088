//! The configuration that is served, with every default, in the words of the file. It contains no secret: passwords and
//! tokens are in files or in the environment, and only their names are shown.

use serde_json::{Map, Value, json};

use super::{Config, Login, Route, StoreKind, StoreSettings, Word, table::InWords as _};
use crate::core::policy::GuardRules;

impl Config {
    /// Shows the whole configuration.
    pub(crate) fn shown(&self) -> Value {
        let mut upstreams = Map::new();
        for route in &self.routes {
            upstreams.entry(route.upstream.name.clone()).or_insert_with(|| route.upstream.shown());
        }
        json!({
            "server": self.server.shown(),
            "admin": self.admin.shown(),
            "store": store(&self.store),
            "telemetry": self.telemetry.shown(),
            "upstreams": upstreams,
            "routes": self.routes.iter().map(|route| route.shown()).collect::<Vec<_>>(),
        })
    }
}

/// Adds the members of one JSON object to another.
fn joined(mut one: Value, other: Value) -> Value {
    if let (Value::Object(one), Value::Object(other)) = (&mut one, other) {
        one.extend(other);
    }
    one
}

fn store(store: &StoreSettings) -> Value {
    let common = joined(store.shown(), json!({ "kind": store.kind.word() }));
    let user = |login: &Option<Login>| {
        let login = login.as_ref();
        json!({
            "user": login.map(|login| &login.user),
            "password_file": login.and_then(|login| login.password_file.as_ref()),
        })
    };
    let own = match &store.kind {
        StoreKind::Memory => json!({}),
        StoreKind::Disk { path } => json!({ "path": path }),
        StoreKind::Etcd(etcd) => joined(
            json!({ "endpoints": etcd.endpoints, "prefix": etcd.prefix, "tls": etcd.tls.shown() }),
            user(&etcd.login),
        ),
        StoreKind::Postgres(postgres) => joined(
            json!({ "url": postgres.url, "schema": postgres.schema, "tls": postgres.tls.shown() }),
            user(&postgres.login),
        ),
        StoreKind::Redis(redis) => {
            joined(json!({ "url": redis.url, "prefix": redis.prefix, "tls": redis.tls.shown() }), user(&redis.login))
        }
    };
    joined(common, own)
}

impl Route {
    /// Shows the keys of the self.
    pub(crate) fn shown(&self) -> Value {
        let shown = json!({
            "name": self.name,
            "host": self.host.to_string(),
            "path": self.path.to_string(),
            "upstream": self.upstream.name,
            "strip_prefix": self.mapping.strip(),
            "add_prefix": self.mapping.add(),
            "policy": self.policy.word(),
            "key": self.key.to_string(),
            "writes_to": self.writes_to.as_ref().map(ToString::to_string),
            "members": self.members.as_ref().map(|template| template.pattern().to_string()),
            "path_params": self.kept.path_params.word(),
            "encoded_slash": self.kept.encoded_slash.word(),
        });
        joined(shown, self.guard.as_deref().map_or(Value::Null, guard))
    }
}

/// The keys of a guarded route.
fn guard(guard: &GuardRules) -> Value {
    let also_changes: Vec<_> = guard.also_changes.iter().map(|each| each.pattern().to_string()).collect();
    joined(guard.shown(), json!({ "also_changes": also_changes }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::{Admin, Listen};

    #[test]
    fn every_key_of_the_file_is_shown() {
        let reference = include_str!("../../config/ifmatch.toml");
        let text = reference.replace("policy = \"optimistic\"", "policy = \"pessimistic\"");
        let loaded = super::super::parse("config/ifmatch.toml", &text).unwrap_or_else(|problems| panic!("{problems}"));
        let mut config = loaded.config;
        let listen = Listen::Tcp(String::new());
        config.admin = Some(Admin { listen, hosts: Vec::new(), token_file: None, token_env: None });
        let mut shown = BTreeSet::new();
        names(&config.shown(), &mut shown);
        let is_name =
            |name: &str| !name.is_empty() && name.chars().all(|each| each.is_ascii_lowercase() || each == '_');
        let keys = reference.lines().filter_map(|line| line.trim_start_matches('#').split_once(" = "));
        let keys = keys.map(|(key, _)| key).filter(|key| is_name(key)).collect::<BTreeSet<_>>();
        assert!(keys.len() > 60, "the reference is read: {keys:?}");
        // Keys of other kinds of store.
        let elsewhere = ["endpoints", "url", "schema", "user", "password_file"];
        let missing = keys.into_iter().filter(|key| !shown.contains(*key) && !elsewhere.contains(key));
        assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
    }

    fn names(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    found.insert(name.clone());
                    names(value, found);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| names(value, found)),
            _ => {}
        }
    }
}
