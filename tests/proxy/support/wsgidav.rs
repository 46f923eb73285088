//! `WsgiDAV` without its locks: a class 1 server with live and dead properties.

use std::{net::SocketAddr, path::PathBuf};

use tempfile::TempDir;

use super::{child::Child, clients};

/// A running server that keeps files; killed on drop.
pub struct Wsgidav {
    _child: Child,
    addr: SocketAddr,
    directory: TempDir,
}

impl Wsgidav {
    pub async fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory.path().join("root");
        std::fs::create_dir(&root).expect("a directory");
        let (addr, child) = Child::on_free_port("WsgiDAV", &directory.path().join("log"), |addr| {
            let file = directory.path().join("wsgidav.yaml");
            let configuration = format!(
                "host: {}\nport: {}\nprovider_mapping:\n  '/': '{}'\nlock_storage: false\nproperty_manager: true\n\
                 simple_dc:\n  user_mapping:\n    '*': true\nverbose: 1\n",
                addr.ip(),
                addr.port(),
                root.display(),
            );
            std::fs::write(&file, configuration).expect("a file");
            let mut command = clients::python_program("wsgidav");
            command.arg("--config").arg(file);
            command
        })
        .await;
        Self { _child: child, addr, directory }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The directory of the files that it serves.
    pub fn root(&self) -> PathBuf {
        self.directory.path().join("root")
    }
}
