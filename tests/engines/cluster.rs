//! An etcd of three members.

use std::{net::SocketAddr, process::Command};

use tempfile::TempDir;

use super::{
    super::{child::Child, ports, wait::until},
    PASSWORD,
};

/// Three members of one etcd.
pub struct EtcdCluster {
    members: Vec<(Child, SocketAddr)>,
    _directory: TempDir,
}

impl EtcdCluster {
    pub async fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let addrs: Vec<_> = (0..3).map(|_| (ports::free(), ports::free())).collect();
        let cluster = addrs.iter().enumerate().map(|(number, (_, peers))| format!("m{number}=http://{peers}"));
        let cluster = cluster.collect::<Vec<_>>().join(",");
        let mut members = Vec::new();
        for (number, (clients, peers)) in addrs.iter().enumerate() {
            let mut command = Command::new("etcd");
            command.args(["--name", &format!("m{number}"), "--initial-cluster", &cluster]);
            command.args(["--initial-cluster-token", PASSWORD]);
            command.arg("--data-dir").arg(directory.path().join(number.to_string()));
            for (option, addr) in [
                ("--listen-client-urls", clients),
                ("--advertise-client-urls", clients),
                ("--listen-peer-urls", peers),
                ("--initial-advertise-peer-urls", peers),
            ] {
                command.args([option, &format!("http://{addr}")]);
            }
            command.args(["--logger", "zap", "--log-outputs", "stderr"]);
            let log = directory.path().join(format!("log{number}"));
            members.push((Child::spawn("etcd", &mut command, log), *clients));
        }
        for (member, _) in &members {
            until("a member to be ready", || member.log().contains("serving client traffic")).await;
        }
        Self { members, _directory: directory }
    }

    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(|(_, addr)| format!("http://{addr}")).collect()
    }

    /// The number of the member that leads, as the member `asked` sees it.
    pub fn leader(&self, asked: usize) -> usize {
        let status = |number: usize| {
            let endpoint = format!("--endpoints={}", self.endpoints()[number]);
            let mut command = Command::new("etcdctl");
            command.env("ETCDCTL_API", "3").args([&endpoint, "endpoint", "status", "--write-out=json"]);
            let status: serde_json::Value =
                serde_json::from_str(&super::output("etcdctl", &mut command)).expect("JSON");
            (status[0]["Status"]["header"]["member_id"].to_string(), status[0]["Status"]["leader"].to_string())
        };
        let (_, leader) = status(asked);
        (0..self.members.len()).find(|number| status(*number).0 == leader).expect("a member leads")
    }

    /// Sends one of them a signal by its name.
    pub fn signal(&self, member: usize, name: &str) {
        self.members[member].0.signal(name);
    }
}
