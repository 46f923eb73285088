//! A tutorial that is being done.

use std::{fs, net::SocketAddr};

use tempfile::TempDir;

use crate::{
    pages::page,
    support::{
        child::Child,
        document::{Block, assert_prints, blocks, shell, steps},
        ports,
        wait::until,
    },
};

/// The addresses of the proxy and of the backend in the pages.
const PROXY: (&str, u16) = ("127.0.0.1", 8080);
const BACKEND: (&str, u16) = ("127.0.0.1", 9000);

/// The state after all that a page says: its files are written, and its servers run.
pub struct Lesson {
    /// Ended before the directory is removed, which has their logs.
    servers: Vec<Child>,
    directory: TempDir,
    proxy: SocketAddr,
    proxy_process: Option<u32>,
    backend: SocketAddr,
}

impl Lesson {
    /// Does what a page says, from its beginning to its end.
    pub async fn of(path: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (proxy, backend) = (ports::free(), ports::free());
        let mut lesson = Self { servers: Vec::new(), directory, proxy, proxy_process: None, backend };
        for block in blocks(&page(path).text) {
            lesson.go_on(&block).await;
        }
        lesson
    }

    async fn go_on(&mut self, block: &Block) {
        let text = self.at_free_addresses(&block.text);
        match (block.kind.as_str(), block.kind.split_once(' ')) {
            ("console", _) => {
                for (command, shown) in steps(&text) {
                    assert_prints(command, self.directory.path(), &shown);
                }
            }
            ("sh", _) => {
                for command in text.lines() {
                    self.start(command).await;
                }
            }
            ("log", _) => {
                for line in text.lines() {
                    until(line, || self.servers.iter().any(|server| server.log().contains(line))).await;
                }
            }
            (_, Some((_, file))) => fs::write(self.directory.path().join(file), text).expect("a file"),
            (kind, None) => panic!("nothing can be done with a block of the kind {kind:?}"),
        }
    }

    /// Starts a server, and waits until it can be connected to.
    async fn start(&mut self, command: &str) {
        let is_proxy = command.starts_with("ifmatch ");
        let addr = if is_proxy { self.proxy } else { self.backend };
        let log = self.directory.path().join(format!("log-{}", self.servers.len()));
        let mut server = Child::spawn(command, &mut shell(&format!("exec {command}"), self.directory.path()), log);
        server.accepts(addr).await.unwrap_or_else(|status| panic!("{command}: {status}\n{}", server.log()));
        self.proxy_process = self.proxy_process.or(is_proxy.then(|| server.id()));
        self.servers.push(server);
    }

    /// The text with free addresses in the place of those that the pages name.
    fn at_free_addresses(&self, text: &str) -> String {
        [(PROXY, self.proxy), (BACKEND, self.backend)].into_iter().fold(
            text.to_owned(),
            |text, ((host, port), free)| {
                let text = text.replace(&format!("{host}:{port}"), &free.to_string());
                text.replace(&format!("\"{host}\", {port}"), &format!("\"{}\", {}", free.ip(), free.port()))
            },
        )
    }

    /// The number of its process.
    pub fn proxy_process(&self) -> u32 {
        self.proxy_process.expect("the page starts it")
    }

    /// The address of the proxy.
    pub fn proxy(&self) -> SocketAddr {
        self.proxy
    }
}
