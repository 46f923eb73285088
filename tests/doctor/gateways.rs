//! Real gateways as child processes: haproxy, Varnish and Caddy.

use std::{net::SocketAddr, path::Path, process::Command};

use tempfile::TempDir;

use crate::support::child::Child;

/// Debian puts some of them where an ordinary user's PATH does not look.
const FOLDERS: [&str; 4] = ["", "/usr/sbin/", "/usr/bin/", "/usr/local/sbin/"];

/// A running gateway; killed on drop.
pub struct RealGateway {
    _child: Child,
    pub addr: SocketAddr,
    _directory: TempDir,
}

impl RealGateway {
    /// A haproxy with its defaults.
    pub async fn haproxy(upstream: SocketAddr) -> Self {
        Self::start("haproxy", |addr, directory, command| {
            let text = format!(
                "defaults\n  mode http\n  timeout connect 5s\n  timeout client 50s\n  timeout server 50s\n\
                 listen all\n  bind {addr}\n  server one {upstream}\n"
            );
            let file = directory.join("haproxy.cfg");
            std::fs::write(&file, text).expect("a file");
            command.arg("-db").arg("-f").arg(file);
        })
        .await
    }

    /// A Varnish with its defaults, which keep answers for two minutes.
    pub async fn varnish(upstream: SocketAddr) -> Self {
        Self::start("varnishd", |addr, directory, command| {
            command.args(["-F", "-a", &addr.to_string(), "-b", &upstream.to_string(), "-s", "malloc,16m", "-n"]);
            command.arg(directory.join("work"));
        })
        .await
    }

    /// The same, but it does not answer what has `Cache-Control: no-cache`.
    pub async fn varnish_that_can_be_passed(upstream: SocketAddr) -> Self {
        Self::start("varnishd", |addr, directory, command| {
            let (host, port) = (upstream.ip(), upstream.port());
            let text = format!(
                "vcl 4.1;\nbackend default {{ .host = \"{host}\"; .port = \"{port}\"; }}\n\
                 sub vcl_recv {{ if (req.http.Cache-Control ~ \"no-cache\") {{ return (pass); }} }}\n"
            );
            let file = directory.join("passed.vcl");
            std::fs::write(&file, text).expect("a file");
            command.args(["-F", "-a", &addr.to_string(), "-s", "malloc,16m", "-f"]).arg(file);
            command.arg("-n").arg(directory.join("work"));
        })
        .await
    }

    /// A Caddy that compresses texts of any length.
    pub async fn caddy(upstream: SocketAddr) -> Self {
        Self::start("caddy", |addr, directory, command| {
            let text = format!(
                "{{\n  admin off\n  auto_https off\n}}\nhttp://:{} {{\n  bind {}\n  encode {{\n    gzip\n    \
                  minimum_length 1\n }}\n  reverse_proxy {upstream}\n}}\n",
                addr.port(),
                addr.ip()
            );
            let file = directory.join("Caddyfile");
            std::fs::write(&file, text).expect("a file");
            command.args(["run", "--adapter", "caddyfile", "--config"]).arg(file).env("HOME", directory);
        })
        .await
    }

    async fn start(name: &str, configure: impl Fn(SocketAddr, &Path, &mut Command)) -> Self {
        let found = FOLDERS.map(|folder| format!("{folder}{name}"));
        let is_there = |program: &&String| Command::new(program).arg("version").output().is_ok();
        let program =
            found.iter().find(is_there).unwrap_or_else(|| panic!("{name} is missing: `make test` installs it"));
        let directory = tempfile::tempdir().expect("a directory");
        let (addr, child) = Child::on_free_port(name, &directory.path().join("log"), |addr| {
            let mut command = Command::new(program);
            configure(addr, directory.path(), &mut command);
            command
        })
        .await;
        Self { _child: child, addr, _directory: directory }
    }
}
