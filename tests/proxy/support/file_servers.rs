//! `WebDAV` servers that users have: nginx with its dav-ext module, lighttpd, and rclone.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use super::child::Child;

/// Where Debian keeps programs that an ordinary user's PATH does not look for.
const SYSTEM_PROGRAMS: &str = "/usr/sbin";

/// A running server that keeps files; killed on drop.
pub struct FileServer {
    _child: Child,
    addr: SocketAddr,
    _directory: TempDir,
}

impl FileServer {
    pub async fn nginx() -> Self {
        Self::start("nginx", |directory, root, addr| {
            let text = format!(
                "load_module modules/ngx_http_dav_ext_module.so;\ndaemon off; master_process off;\npid {0}/pid;\n\
                 events {{}}\nhttp {{\naccess_log off; client_body_temp_path {0}/body;\nserver {{\nlisten {addr};\n\
                 location / {{\nroot {1};\ndav_methods PUT DELETE MKCOL COPY MOVE;\n\
                 dav_ext_methods PROPFIND OPTIONS;\n}}\n}}\n}}\n",
                directory.display(),
                root.display(),
            );
            let mut command = system_program("nginx");
            // Modules are looked for below the prefix.
            command.args(["-p", "/usr/share/nginx", "-e", "stderr", "-c"]).arg(written(directory, &text));
            command
        })
        .await
    }

    pub async fn lighttpd() -> Self {
        Self::start("lighttpd", |directory, root, addr| {
            let text = format!(
                "server.modules = (\"mod_webdav\")\nserver.bind = \"{}\"\nserver.port = {}\n\
                 server.document-root = \"{}\"\nserver.upload-dirs = (\"{}\")\n\
                 webdav.activate = \"enable\"\nwebdav.is-readonly = \"disable\"\n",
                addr.ip(),
                addr.port(),
                root.display(),
                directory.display(),
            );
            let mut command = system_program("lighttpd");
            command.arg("-D").arg("-f").arg(written(directory, &text));
            command
        })
        .await
    }

    pub async fn rclone() -> Self {
        Self::start("rclone", |directory, root, addr| {
            let mut command = Command::new("rclone");
            command.args(["serve", "webdav", "--config"]).arg(directory.join("none")).arg(root);
            command.args(["--addr", &addr.to_string(), "--dir-cache-time", "0", "--vfs-cache-mode", "writes"]);
            command.arg("--cache-dir").arg(directory.join("cache"));
            command
        })
        .await
    }

    async fn start(name: &str, command: impl Fn(&Path, &Path, SocketAddr) -> Command) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory.path().join("root");
        std::fs::create_dir(&root).expect("a directory");
        let (addr, child) =
            Child::on_free_port(name, &directory.path().join("log"), |addr| command(directory.path(), &root, addr))
                .await;
        Self { _child: child, addr, _directory: directory }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

fn written(directory: &Path, configuration: &str) -> PathBuf {
    let file = directory.join("configuration");
    std::fs::write(&file, configuration).expect("a file");
    file
}

fn system_program(name: &str) -> Command {
    let system = Path::new(SYSTEM_PROGRAMS).join(name);
    Command::new(if system.exists() { system } else { name.into() })
}
