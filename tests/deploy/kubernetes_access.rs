//! The permitted connections in the cluster: network policies, and Prometheus with its token.

use serde_json::{Value, json};

use super::kubernetes::{documents, of_kind};

/// Each manifest with the kind of its workload, and that of its monitor.
const MANIFESTS: [(&str, &str, &str); 2] =
    [("sidecar.yaml", "StatefulSet", "sidecar-monitor.yaml"), ("gateway.yaml", "Deployment", "gateway-monitor.yaml")];

/// The policies for the pods with these labels.
fn policies<'a>(documents: &'a [Value], labels: &Value) -> Vec<&'a Value> {
    let policies = documents.iter().filter(|document| document["kind"] == "NetworkPolicy");
    policies.map(|policy| &policy["spec"]).filter(|policy| policy["podSelector"]["matchLabels"] == *labels).collect()
}

/// The labels of the pods of a workload.
fn labels<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    &of_kind(documents, kind)["spec"]["template"]["metadata"]["labels"]
}

#[test]
fn every_client_reaches_the_proxy_and_prometheus_alone_its_admin_listener() {
    for (name, kind, _) in MANIFESTS {
        let documents = documents(name);
        let policies = policies(&documents, labels(&documents, kind));
        assert_eq!(policies.len(), 1, "{name}");
        assert_eq!(policies[0]["policyTypes"], json!(["Ingress"]), "{name}");
        let monitoring = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}});
        let expected = json!([{"ports": [{"port": "http"}]}, {"from": [monitoring], "ports": [{"port": "admin"}]}]);
        assert_eq!(policies[0]["ingress"], expected, "{name}");
    }
}

/// The promise holds only if every writer comes through the proxy.
#[test]
fn the_backend_of_a_gateway_takes_requests_from_the_gateway_alone() {
    let documents = documents("gateway.yaml");
    let policies = policies(&documents, &json!({"app.kubernetes.io/name": "documents"}));
    let only = json!([{"from": [{"podSelector": {"matchLabels": labels(&documents, "Deployment")}}]}]);
    assert_eq!(policies.iter().map(|policy| &policy["ingress"]).collect::<Vec<_>>(), [&only]);
}

#[test]
fn prometheus_reads_the_metrics_with_the_token_of_the_admin_listener() {
    for (name, kind, monitor) in MANIFESTS {
        let (documents, monitors) = (documents(name), documents(monitor));
        let spec = &of_kind(&monitors, "PodMonitor")["spec"];
        assert_eq!(spec["selector"]["matchLabels"], *labels(&documents, kind), "{name}");
        let endpoint = &spec["podMetricsEndpoints"][0];
        assert_eq!((&endpoint["port"], &endpoint["path"]), (&json!("admin"), &json!("/metrics")), "{name}");
        assert_eq!(endpoint["relabelings"], json!([{"targetLabel": "job", "replacement": "ifmatch"}]), "{name}");
        assert_eq!(endpoint["authorization"]["type"], "Bearer", "{name}");
        let (credentials, secret) = (&endpoint["authorization"]["credentials"], of_kind(&documents, "Secret"));
        assert_eq!(credentials["name"], secret["metadata"]["name"], "{name}");
        assert!(secret["stringData"][credentials["key"].as_str().expect("a key")].is_string(), "{name}");
    }
}
