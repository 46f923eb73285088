//! Clients whose credentials hold for one request: Digest, with the real Apache and the real curl. No probe can carry
//! them, so the route probes with a field of the proxy's own (`probe_auth = "field"`).

use std::{fs, net::SocketAddr, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use tempfile::TempDir;

use crate::support::{
    apache::apache,
    child::Child,
    proxy::Proxy,
    raw::{get, put},
};

/// Ann, with the password `secret` in the realm `files`.
const PASSWORDS: &str = "ann:files:8e6f5228647879e21dfa06e822445cc8\n";

const FIELD_OF_PROBES: &str = "X-Api-Key: reads-all\n";

/// Apache, with a folder that Ann may write, and that the field above may read.
struct Apache {
    addr: SocketAddr,
    _child: Child,
    directory: TempDir,
}

impl Apache {
    async fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        // Apache serves as another user.
        let everybody = || fs::Permissions::from_mode(0o777);
        fs::create_dir(directory.path().join("root")).expect("a directory");
        for place in [directory.path(), &directory.path().join("root")] {
            fs::set_permissions(place, everybody()).expect("its own directory");
        }
        fs::write(directory.path().join("passwords"), PASSWORDS).expect("a file");
        let (addr, child) =
            Child::on_free_port("apache", &directory.path().join("log"), |addr| with_digest(directory.path(), addr))
                .await;
        Self { addr, _child: child, directory }
    }

    fn content(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.directory.path().join("root").join(name)).ok()
    }
}

fn with_digest(directory: &Path, addr: SocketAddr) -> Command {
    let directives = "DocumentRoot root\nFileETag None\nDavLockDB locks\n<Location />\nDav On\nAuthType Digest\n\
                      AuthName files\nAuthDigestProvider file\nAuthUserFile passwords\n<RequireAny>\nRequire valid-user\n\
                      Require expr \"%{HTTP:X-Api-Key} == 'reads-all' && %{REQUEST_METHOD} in {'GET', 'HEAD'}\"\n\
                      </RequireAny>\n</Location>\n";
    apache(directory, addr, &["authn_core", "authn_file", "authz_user", "auth_digest", "dav", "dav_fs"], directives)
}

/// Sends a request as Ann by curl, which answers Apache's challenge, and returns the status and the tag of the answer.
async fn as_ann(addr: SocketAddr, arguments: &'static [&'static str], fields: &[String]) -> (String, String) {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "60", "--digest", "--user", "ann:secret"]);
    command.args(["--output", "/dev/null", "--write-out", "%{http_code} %header{etag}"]).args(arguments);
    for field in fields {
        command.arg("--header").arg(field);
    }
    command.arg(format!("http://{addr}/doc"));
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("it ran").expect("curl is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8(output.stdout).expect("UTF-8");
    let (status, tag) = told.split_once(' ').expect("a status");
    (status.to_owned(), tag.to_owned())
}

async fn before(apache: &Apache, keys: &str) -> Proxy {
    Proxy::to(apache.addr).route(&format!("etag = \"content\"\n{keys}")).start().await
}

#[tokio::test]
async fn a_client_with_digest_updates_and_is_told_of_a_lost_update() {
    let apache = Apache::start().await;
    let file = apache.directory.path().join("field");
    fs::write(&file, FIELD_OF_PROBES).expect("a file");
    let keys = format!("probe_auth = \"field\"\nprobe_field_file = {file:?}");
    let proxy = before(&apache, &keys).await;
    let addr = proxy.addr();
    let create = as_ann(addr, &["--request", "PUT", "--data", "one"], &["If-None-Match: *".to_owned()]).await;
    assert_eq!(create.0, "201");
    let (status, tag) = as_ann(addr, &[], &[]).await;
    assert_eq!((status.as_str(), apache.content("doc").as_deref()), ("200", Some("one")));
    let based = [format!("If-Match: {tag}")];
    assert_eq!(as_ann(addr, &["--request", "PUT", "--data", "two"], &based).await.0, "204");
    assert_eq!(as_ann(addr, &["--request", "PUT", "--data", "three"], &based).await.0, "412");
    assert_eq!(apache.content("doc").as_deref(), Some("two"));
    // The credentials by which the proxy reads let no client write, and read for none.
    let current = as_ann(addr, &[], &[]).await.1;
    assert_eq!(put(addr, "/doc", &[("If-Match", &current)], "four").await.status, 401);
    assert_eq!(get(addr, "/doc").await.status, 401);
}

/// With the client's credentials, the probe is refused, and the refusal names the remedy.
#[tokio::test]
async fn a_client_with_digest_is_told_which_key_is_missing() {
    let apache = Apache::start().await;
    fs::write(apache.directory.path().join("root/doc"), "one").expect("a file");
    let proxy = before(&apache, "").await;
    let tag = as_ann(proxy.addr(), &[], &[]).await.1;
    let credentials =
        ("Authorization", "Digest username=\"ann\", realm=\"files\", nonce=\"n\", uri=\"/doc\", response=\"r\"");
    let refused = put(proxy.addr(), "/doc", &[credentials, ("If-Match", &tag)], "two").await;
    let problem = refused.refused(502, "validator-unavailable");
    assert!(problem.detail.contains("probe_auth = \"field\""), "{problem:?}");
    assert_eq!(apache.content("doc").as_deref(), Some("one"));
}
