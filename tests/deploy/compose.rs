//! The composition of containers: its configuration with the real backend and the real engine, as processes.

use std::fs;

use super::{
    file,
    support::{
        engines::Etcd,
        nginx::Nginx,
        proxy::Proxy,
        raw::{get, put, send},
    },
    yaml,
};

/// Files that the composition names exist, and each name that the configuration looks up is a service.
#[test]
fn the_composition_names_what_is_there() {
    let path = file("deploy/docker/compose.yaml");
    let composition = yaml(&path);
    let services = composition["services"].as_object().expect("services");
    assert_eq!(services.keys().collect::<Vec<_>>(), ["backend", "etcd", "ifmatch", "second"]);
    let directory = path.parent().expect("a directory");
    for service in services.values() {
        let mounts = service["volumes"].as_array().expect("each has some").iter().filter_map(|mount| mount.as_str());
        for source in mounts.filter_map(|mount| mount.strip_prefix("./")?.split(':').next()) {
            assert!(directory.join(source).is_file(), "{source}");
        }
    }
    let build = &services["ifmatch"]["build"];
    let context = directory.join(build["context"].as_str().expect("a directory"));
    assert!(context.join(build["dockerfile"].as_str().expect("a file")).is_file());
}

/// Two proxies with the configuration of the composition guard one backend.
#[tokio::test]
async fn a_lease_that_is_taken_at_one_proxy_is_kept_at_the_other() {
    let (nginx, etcd) = (Nginx::start().await, Etcd::start().await);
    let text = fs::read_to_string(file("deploy/docker/ifmatch.toml")).expect("the configuration");
    let text = text.replace("backend:9000", &nginx.addr().to_string());
    let text = text.replace("http://etcd:2379", &etcd.endpoint());
    let text =
        text.replace("listen = [\"0.0.0.0:8080\"]", "{listen}").replace("[admin]\nlisten = \"0.0.0.0:9901\"\n", "");
    let (first, second) = (Proxy::start(&text).await, Proxy::start(&text).await);
    let granted = send(first.addr(), "POST", "/.leases/jobs/7", &[("Lease-Duration", "30")], "").await;
    assert_eq!(granted.status, 201);
    let refused = put(second.addr(), "/jobs/7", &[], "another").await;
    refused.refused(412, "lease-id-missing");
    assert_eq!(get(second.addr(), "/jobs/7").await.status, 404, "nothing was written");
}
