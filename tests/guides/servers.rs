//! Servers and gateways as their users run them, and the configurations of the pages in front of them.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::{
    pages::{page, root},
    support::{child::Child, clients, document::blocks, proxy::Proxy, raw::send, response::Response},
};

pub const JSON: (&str, &str) = ("Content-Type", "application/json");
/// The address of ifmatch in the pages.
pub const PROXY: &str = "127.0.0.1:8080";
/// The address of the server behind it in the pages.
const SERVER: &str = "127.0.0.1:9000";

/// A server or gateway as its users run it; killed on drop.
pub struct Program {
    _child: Child,
    pub addr: SocketAddr,
    _directory: TempDir,
}

impl Program {
    /// Starts what is made for a directory and an address, and waits until it accepts connections.
    async fn start(name: &str, command: impl Fn(&Path, SocketAddr) -> Command) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let log = directory.path().join("log");
        let (addr, child) = Child::on_free_port(name, &log, |addr| command(directory.path(), addr)).await;
        Self { _child: child, addr, _directory: directory }
    }

    pub async fn express() -> Self {
        Self::node("express.cjs").await
    }

    /// Express whose users edit in a form.
    pub async fn express_with_forms() -> Self {
        Self::node("forms.cjs").await
    }

    async fn node(file: &str) -> Self {
        Self::start(file, |_, addr| {
            let mut command = Command::new("node");
            command.arg(app(file)).arg(clients::node_package("express").parent().expect("a folder"));
            command.arg(addr.ip().to_string()).arg(addr.port().to_string());
            command
        })
        .await
    }

    pub async fn django() -> Self {
        Self::start("Django", |directory, addr| {
            let mut command = clients::python();
            command.arg("-B").arg(app("django_rest.py")).arg(directory).arg(addr.to_string());
            command
        })
        .await
    }

    /// With the file of its page, in front of this proxy.
    pub async fn vite(proxy: SocketAddr) -> Self {
        let file = block("docs/how-to/vite.md", "javascript vite.config.js").replace(PROXY, &proxy.to_string());
        Self::start("Vite", |directory, addr| {
            let packages = clients::node_package("vite");
            let link = directory.join("node_modules");
            if !link.exists() {
                std::os::unix::fs::symlink(packages.parent().expect("a folder"), link).expect("a link");
            }
            std::fs::write(directory.join("vite.config.js"), &file).expect("a file");
            std::fs::write(directory.join("package.json"), r#"{"type": "module"}"#).expect("a file");
            std::fs::write(directory.join("index.html"), "<title>notes</title>").expect("a file");
            let mut command = Command::new("node");
            command.arg(packages.join("bin/vite.js")).arg("--strictPort").current_dir(directory);
            command.args(["--host", &addr.ip().to_string(), "--port", &addr.port().to_string()]);
            // The host that the requests of the tests name.
            command.env("__VITE_ADDITIONAL_SERVER_ALLOWED_HOSTS", "test");
            command
        })
        .await
    }

    /// With the file of its page, over HTTP, in front of this proxy.
    pub async fn caddy(proxy: SocketAddr) -> Self {
        let file = block("docs/how-to/caddy.md", "caddyfile").replace(PROXY, &proxy.to_string());
        Self::start("Caddy", |directory, addr| {
            let site = format!("http://:{} {{\n\tbind {}", addr.port(), addr.ip());
            let text = file.replace("api.example.com {", &site);
            let path = directory.join("Caddyfile");
            std::fs::write(&path, format!("{{\n\tadmin off\n}}\n{text}")).expect("a file");
            let mut command = Command::new("caddy");
            command.args(["run", "--adapter", "caddyfile", "--config"]).arg(path).env("HOME", directory);
            command
        })
        .await
    }
}

fn app(file: &str) -> PathBuf {
    root().join("tests/guides/apps").join(file)
}

/// The first block of a kind on a page.
pub fn block(path: &str, kind: &str) -> String {
    nth_block(path, kind, 0)
}

pub fn nth_block(path: &str, kind: &str, number: usize) -> String {
    let of_kind = blocks(&page(path).text).into_iter().filter(|block| block.kind == kind);
    of_kind.map(|block| block.text).nth(number).unwrap_or_else(|| panic!("{path} has no such {kind}"))
}

/// The proxy of a configuration, in front of this server.
pub async fn proxy_of(file: &str, server: SocketAddr) -> Proxy {
    let file = file.replace(SERVER, &server.to_string());
    let listen = format!("listen = [\"{PROXY}\"]");
    let file = if file.contains(&listen) {
        file.replace(&listen, "{listen}")
    } else {
        format!("[server]\n{{listen}}\n{file}")
    };
    Proxy::start(&file).await
}

pub async fn put(addr: SocketAddr, target: &str, fields: &[(&str, &str)], text: &str) -> Response {
    let fields = [&[JSON], fields].concat();
    send(addr, "PUT", target, &fields, format!(r#"{{"text":"{text}"}}"#)).await
}
