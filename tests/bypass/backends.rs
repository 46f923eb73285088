//! The servers behind the proxy, each as a child process. Apache, nginx and `WsgiDAV` keep files, moto and s3rver objects; the
//! others keep documents, in an application that is written as their users write them.

use std::{
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::{
    requests::{Kind, plain_path},
    support::{
        apache::apache,
        child::Child,
        clients,
        nginx::Nginx,
        raw::{put, send},
    },
};

/// The content of the resource: only its holder may read it.
pub const CONTENT: &str = "the secret of the holder";

/// moto lets no client overwrite an object without credentials, and looks at no signature.
const SIGNED: &[(&str, &str)] = &[(
    "Authorization",
    "AWS4-HMAC-SHA256 Credential=S3RVER/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0",
)];

/// One server.
pub struct Backend {
    pub name: &'static str,
    pub kind: Kind,
    pub addr: SocketAddr,
    /// The field by which every client has all rights there.
    pub credentials: &'static [(&'static str, &'static str)],
    /// The parts that end with it: the process, and the directory of its files.
    _running: Box<dyn Send + Sync>,
}

/// The place where a server may keep its files, and its address.
struct Place<'a> {
    directory: &'a Path,
    addr: SocketAddr,
}

type Start = fn(&Place<'_>) -> Command;

const OTHERS: [(&str, Kind, Start); 10] = [
    ("Apache", Kind::Files, webdav),
    ("WsgiDAV", Kind::Files, |place| python(place, "wsgidav")),
    ("Express", Kind::Documents, |place| node(place, "express")),
    ("Fastify", Kind::Documents, |place| node(place, "fastify")),
    ("Flask", Kind::Documents, |place| python(place, "flask")),
    ("Django", Kind::Documents, |place| python(place, "django")),
    ("PHP", Kind::Documents, php),
    ("Go", Kind::Documents, go),
    ("moto", Kind::Objects, |place| python(place, "moto")),
    ("s3rver", Kind::Objects, s3rver),
];

/// Starts all of them, each with the resource that is leased later.
pub async fn start() -> Vec<Backend> {
    let nginx = Nginx::start().await;
    let addr = nginx.addr();
    let mut backends =
        vec![Backend { name: "nginx", kind: Kind::Files, addr, credentials: &[], _running: Box::new(nginx) }];
    for (name, kind, start) in OTHERS {
        let (addr, child, directory) = listening(name, start).await;
        let credentials = if name == "moto" { SIGNED } else { &[] };
        backends.push(Backend { name, kind, addr, credentials, _running: Box::new((child, directory)) });
    }
    for backend in &backends {
        backend.restore().await;
    }
    backends
}

impl Backend {
    /// Makes the resource what it was.
    pub async fn restore(&self) {
        // It exists already, unless a request has removed it.
        let (made, expected) = match (self.name, self.kind) {
            (_, Kind::Objects) => (put(self.addr, "/bucket", self.credentials, "").await.status, [200, 409]),
            ("Apache" | "WsgiDAV", _) => (send(self.addr, "MKCOL", "/d", &[], "").await.status, [201, 405]),
            _ => (201, [201, 201]),
        };
        assert!(expected.contains(&made), "{}: {made}", self.name);
        let fields = [&[("Content-Type", "text/plain")], self.credentials].concat();
        let written = put(self.addr, plain_path(self.kind), &fields, CONTENT).await;
        assert!(matches!(written.status, 200..300), "{}: {written:?}", self.name);
    }
}

async fn listening(name: &str, start: Start) -> (SocketAddr, Child, TempDir) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    // Apache serves as another user.
    let everybody = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(directory.path(), everybody.clone()).expect("its own directory");
    std::fs::create_dir(directory.path().join("root")).expect("a directory");
    std::fs::set_permissions(directory.path().join("root"), everybody).expect("its own directory");
    let (addr, child) = Child::on_free_port(name, &directory.path().join("log"), |addr| {
        start(&Place { directory: directory.path(), addr })
    })
    .await;
    (addr, child, directory)
}

fn application(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bypass/apps").join(file)
}

fn webdav(place: &Place<'_>) -> Command {
    let directives = "DocumentRoot root\nDavLockDB locks\n<Location />\nDav On\nRequire all granted\n</Location>\n";
    apache(place.directory, place.addr, &["dav", "dav_fs"], directives)
}

fn python(place: &Place<'_>, kind: &str) -> Command {
    let mut command = clients::python();
    command.arg(application("documents.py")).arg(kind);
    command.arg(place.addr.ip().to_string()).arg(place.addr.port().to_string()).arg(place.directory.join("root"));
    command
}

fn node(place: &Place<'_>, kind: &str) -> Command {
    let mut command = Command::new("node");
    let modules = clients::node_package(kind);
    command.arg(application("documents.cjs")).arg(kind);
    command.arg(place.addr.ip().to_string()).arg(place.addr.port().to_string());
    command.arg(modules.parent().expect("the folder of all packages"));
    command
}

fn php(place: &Place<'_>) -> Command {
    let mut command = Command::new("php");
    command.arg("-S").arg(place.addr.to_string()).arg(application("documents.php"));
    command.env("DOCUMENTS", place.directory.join("root"));
    command
}

/// Built with the standard library alone, so there is nothing to download.
fn go(place: &Place<'_>) -> Command {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
    let program = place.directory.join("documents");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&program).arg(application("documents.go"));
    build.env("GO111MODULE", "off").env("GOFLAGS", "").env("GOCACHE", &cache).env("GOPATH", cache.join("path"));
    let output = build.output().expect("go is missing: run `make setup-test`");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut command = Command::new(program);
    command.arg(place.addr.to_string());
    command
}

fn s3rver(place: &Place<'_>) -> Command {
    let mut command = Command::new("node");
    command.arg(clients::node_package("s3rver").join("bin/s3rver.js"));
    command.arg("--directory").arg(place.directory.join("root"));
    let (ip, port) = (place.addr.ip().to_string(), place.addr.port().to_string());
    command.args(["--address", &ip, "--port", &port, "--no-vhost-buckets", "--allow-mismatched-signatures"]);
    command
}
