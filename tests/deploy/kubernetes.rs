//! The manifests for Kubernetes: valid for its schemas, and consistent with the configuration that they carry.

use std::{fs, process::Command, time::Duration};

use ifmatch::config::{Config, StoreKind, parse};
use serde_json::{Value, json};

use super::{file, output, support::clients::python};

/// The documents of a manifest, each checked against the schemas.
pub fn documents(name: &str) -> Vec<Value> {
    let script = file("tests/deploy/kubernetes.py");
    let text = output(python().arg(script).arg(file(&format!("deploy/kubernetes/{name}"))));
    serde_json::from_str(&text).expect("JSON")
}

/// The only document of a kind.
pub fn of_kind<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    let mut found = documents.iter().filter(|document| document["kind"] == kind);
    let only = found.next().unwrap_or_else(|| panic!("no {kind}"));
    assert!(found.next().is_none(), "more than one {kind}");
    only
}

/// A configuration that a manifest gives its proxies; it must load without a warning.
fn loaded(text: &str) -> Config {
    let loaded = parse("ifmatch.toml", text).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(), Vec::<String>::new());
    loaded.config
}

/// The configuration in a `ConfigMap`.
fn carried(documents: &[Value]) -> &str {
    of_kind(documents, "ConfigMap")["data"]["ifmatch.toml"].as_str().expect("a file")
}

/// The configuration that the gateway gets from its kustomization.
fn generated() -> Config {
    loaded(&fs::read_to_string(file("deploy/kubernetes/gateway.toml")).expect("a file"))
}

/// The container of the proxy.
fn proxy(workload: &Value) -> &Value {
    let containers = workload["spec"]["template"]["spec"]["containers"].as_array().expect("containers");
    containers.iter().find(|container| container["name"] == "ifmatch").expect("that of the proxy")
}

fn seconds(value: &Value) -> Duration {
    Duration::from_secs(value.as_u64().unwrap_or_else(|| panic!("seconds, not {value}")))
}

/// A pod is given time for the pause before SIGTERM, and for what is in flight after it.
fn leaves_time_to_drain(workload: &Value, config: &Config) {
    let pause = seconds(&proxy(workload)["lifecycle"]["preStop"]["sleep"]["seconds"]);
    let grace = seconds(&workload["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]);
    let needed = pause + config.server.shutdown_timeout;
    assert!(grace > needed, "{grace:?} for {needed:?}");
}

/// Its probes ask the admin listener where the configuration has it.
fn is_asked_for_its_health(workload: &Value, config: &Config) {
    let ports = proxy(workload)["ports"].as_array().expect("ports");
    let admin = ports.iter().find(|port| port["name"] == "admin").expect("that of the admin listener");
    let listen = format!("{:?}", config.admin.as_ref().expect("an admin listener").listen);
    assert!(listen.contains(&format!(":{}\"", admin["containerPort"])), "{listen}");
    for (probe, path) in [("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")] {
        let asked = &proxy(workload)[probe]["httpGet"];
        assert_eq!((asked["path"].as_str(), asked["port"].as_str()), (Some(path), Some("admin")), "{probe}");
    }
}

#[test]
fn a_sidecar_with_a_store_of_its_own_runs_once() {
    let documents = documents("sidecar.yaml");
    let config = loaded(carried(&documents));
    assert!(matches!(config.store.kind, StoreKind::Disk { .. }), "{:?}", config.store.kind);
    // A StatefulSet waits until a pod is known to be gone before it starts another one in its place.
    let workload = of_kind(&documents, "StatefulSet");
    assert_eq!(workload["spec"]["replicas"], 1);
    leaves_time_to_drain(workload, &config);
    is_asked_for_its_health(workload, &config);
}

#[test]
fn the_backend_of_a_sidecar_outlives_it() {
    let documents = documents("sidecar.yaml");
    let config = loaded(carried(&documents));
    let workload = of_kind(&documents, "StatefulSet");
    let backend = &workload["spec"]["template"]["spec"]["containers"][0];
    let pause = seconds(&proxy(workload)["lifecycle"]["preStop"]["sleep"]["seconds"]);
    let outlives = seconds(&backend["lifecycle"]["preStop"]["sleep"]["seconds"]);
    assert!(outlives >= pause + config.server.shutdown_timeout, "{outlives:?}");
}

#[test]
fn a_gateway_of_several_replicas_shares_its_store() {
    let documents = documents("gateway.yaml");
    let config = generated();
    let workload = of_kind(&documents, "Deployment");
    assert!(workload["spec"]["replicas"].as_u64() > Some(1));
    assert!(matches!(config.store.kind, StoreKind::Etcd(_)), "{:?}", config.store.kind);
    leaves_time_to_drain(workload, &config);
    is_asked_for_its_health(workload, &config);
}

/// The generated name of the `ConfigMap` ends with a hash, so a changed configuration is another template of the pods.
#[test]
fn a_changed_configuration_replaces_the_replicas_of_a_gateway() {
    let (found, gateway) = (documents("kustomization.yaml"), documents("gateway.yaml"));
    let kustomization = of_kind(&found, "Kustomization");
    assert_eq!(kustomization["resources"], json!(["gateway.yaml"]));
    let generated = json!([{"name": "ifmatch", "files": ["ifmatch.toml=gateway.toml"]}]);
    assert_eq!(kustomization["configMapGenerator"], generated, "without an option that takes the hash away");
    let workload = of_kind(&gateway, "Deployment");
    let volumes = &workload["spec"]["template"]["spec"]["volumes"];
    assert_eq!(volumes[0]["configMap"], json!({"name": "ifmatch"}));
    assert_eq!(proxy(workload)["args"], json!(["run", "/etc/ifmatch/ifmatch.toml"]));
}

#[test]
fn a_changed_configuration_restarts_a_sidecar() {
    let documents = documents("sidecar.yaml");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("ifmatch.toml");
    fs::write(&path, carried(&documents)).expect("a file");
    let digest = output(Command::new("sha256sum").arg(path));
    let annotations = &of_kind(&documents, "StatefulSet")["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["checksum/configuration"].as_str(), digest.split(' ').next());
}

#[test]
fn a_gateway_survives_the_drain_of_a_node() {
    let documents = documents("gateway.yaml");
    let workload = of_kind(&documents, "Deployment");
    let budget = &of_kind(&documents, "PodDisruptionBudget")["spec"];
    assert_eq!(budget["maxUnavailable"], 1);
    assert_eq!(budget["selector"], workload["spec"]["selector"]);
    assert_eq!(workload["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], 0);
}

#[test]
fn no_container_of_the_proxy_can_do_more_than_it_needs() {
    for (name, kind) in [("sidecar.yaml", "StatefulSet"), ("gateway.yaml", "Deployment")] {
        let documents = documents(name);
        let workload = of_kind(&documents, kind);
        assert_eq!(workload["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"], true, "{name}");
        let context = &proxy(workload)["securityContext"];
        assert_eq!(context["readOnlyRootFilesystem"], true, "{name}");
        assert_eq!(context["allowPrivilegeEscalation"], false, "{name}");
        assert_eq!(context["capabilities"]["drop"][0], "ALL", "{name}");
    }
}
