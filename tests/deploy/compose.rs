//! The composition of containers: its configuration with the real backend and the real engine, as processes.

use std::{
    fs, iter,
    net::{Ipv4Addr, SocketAddr},
    process::Command,
};

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use super::{
    file,
    image::{complete, image, run},
    output,
    support::{
        child::Child,
        engines::Etcd,
        nginx::Nginx,
        ports,
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
    assert_eq!(services.keys().collect::<Vec<_>>(), ["backend", "etcd", "grafana", "ifmatch", "prometheus", "second"]);
    let directory = path.parent().expect("a directory");
    for service in services.values() {
        let mounts = service["volumes"].as_array().expect("each has some").iter().filter_map(|mount| mount.as_str());
        for source in mounts.filter_map(|mount| mount.split(':').next().filter(|source| source.starts_with('.'))) {
            assert!(directory.join(source).is_file(), "{source}");
        }
    }
    let build = &services["ifmatch"]["build"];
    let context = directory.join(build["context"].as_str().expect("a directory"));
    assert!(context.join(build["dockerfile"].as_str().expect("a file")).is_file());
}

/// Prometheus reads its configuration with the alerts beside it, and scrapes each proxy by a name that the proxy takes.
#[test]
fn prometheus_finds_no_fault_with_its_configuration() {
    let directory = tempdir().expect("a directory");
    for path in ["deploy/docker/prometheus.yaml", "deploy/prometheus/alerts.yaml"] {
        let path = file(path);
        fs::copy(&path, directory.path().join(path.file_name().expect("a name"))).expect("a copy");
    }
    let token = directory.path().join("token");
    fs::write(&token, "").expect("a file");
    let path = directory.path().join("prometheus.yaml");
    let text = fs::read_to_string(&path).expect("the configuration");
    let here = text.replace("/etc/prometheus/ifmatch-token", token.to_str().expect("UTF-8"));
    fs::write(&path, here).expect("a file");
    output(Command::new("promtool").args(["check", "config"]).arg(&path));
    let scraped = &yaml(&path)["scrape_configs"][0]["static_configs"][0]["targets"];
    assert_eq!(*scraped, serde_json::json!(["ifmatch:9901", "second:9901"]));
}

/// One of the composition's proxies: in its image, with its configuration and its environment. Names lead to this
/// machine, and only ports differ.
struct Container {
    process: Child,
    listen: SocketAddr,
    admin: SocketAddr,
    _directories: [TempDir; 2],
}

/// The loopback address of a port that is free on all addresses of this machine, since the containers listen on all.
fn free() -> SocketAddr {
    let mut ports = iter::repeat_with(|| ports::free().port());
    let port = ports.find(|port| ports::is_free((Ipv4Addr::UNSPECIFIED, *port).into()));
    SocketAddr::from((Ipv4Addr::LOCALHOST, port.expect("it looks until it finds one")))
}

impl Container {
    async fn start(service: &Value, backend: SocketAddr, etcd: SocketAddr) -> Self {
        let (root, log, listen, admin) = (image(), tempdir().expect("a directory"), free(), free());
        complete(&root, &[("backend", backend), ("etcd", etcd)]);
        let mut text = fs::read_to_string(file("deploy/docker/ifmatch.toml")).expect("the configuration");
        for (from, to) in [
            ("0.0.0.0:8080", format!("0.0.0.0:{}", listen.port())),
            ("0.0.0.0:9901", format!("0.0.0.0:{}", admin.port())),
            ("backend:9000", format!("backend:{}", backend.port())),
            ("etcd:2379", format!("etcd:{}", etcd.port())),
        ] {
            assert_eq!(text.matches(from).count(), 1, "{from}");
            text = text.replace(from, &to);
        }
        fs::write(root.path().join("etc/ifmatch/ifmatch.toml"), text).expect("a file");
        // The command of the Dockerfile; the service names no other.
        assert_eq!(service.get("command"), None);
        let mut command = run(&root, &["run", "/etc/ifmatch/ifmatch.toml"]);
        command.env("IFMATCH_ADMIN_TOKEN", token(service));
        let mut process = Child::spawn("the container", &mut command, log.path().join("log"));
        process.accepts(listen).await.unwrap_or_else(|status| panic!("it ended: {status}\n{}", process.log()));
        Self { process, listen, admin, _directories: [root, log] }
    }
}

/// The token that a service has if the user sets none.
fn token(service: &Value) -> &str {
    let environment = service["environment"].as_object().expect("variables");
    assert_eq!(environment.keys().collect::<Vec<_>>(), ["IFMATCH_ADMIN_TOKEN"]);
    let value = environment["IFMATCH_ADMIN_TOKEN"].as_str().expect("a text");
    value.strip_prefix("${IFMATCH_ADMIN_TOKEN:-").and_then(|rest| rest.strip_suffix('}')).expect("a default")
}

/// Two proxies guard one backend, and each has its admin listener behind the token.
#[tokio::test]
async fn the_containers_start_and_a_lease_that_is_taken_at_one_is_kept_at_the_other() {
    let (nginx, etcd) = (Nginx::start().await, Etcd::start().await);
    let services = &yaml(&file("deploy/docker/compose.yaml"))["services"];
    let first = Container::start(&services["ifmatch"], nginx.addr(), etcd.addr()).await;
    let second = Container::start(&services["second"], nginx.addr(), etcd.addr()).await;
    let granted = send(first.listen, "POST", "/.leases/jobs/7", &[("Lease-Duration", "30")], "").await;
    assert_eq!(granted.status, 201);
    let refused = put(second.listen, "/jobs/7", &[], "another").await;
    refused.refused(412, "lease-id-missing");
    assert_eq!(get(second.listen, "/jobs/7").await.status, 404, "nothing was written");
    let bearer = format!("Bearer {}", token(&services["second"]));
    let fields = [("Host", "localhost"), ("Authorization", bearer.as_str())];
    assert_eq!(send(second.admin, "GET", "/leases", &fields, "").await.status, 200);
    assert_eq!(send(second.admin, "GET", "/leases", &fields[..1], "").await.status, 401);
    let of_prometheus = [("Host", "second:9901"), ("Authorization", bearer.as_str())];
    assert_eq!(send(second.admin, "GET", "/metrics", &of_prometheus, "").await.status, 200);
}
