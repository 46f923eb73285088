//! Sessions of clients that return, over TLS 1.2 and 1.3 (docs/tls.md, "Sessions"). The clients are openssl's.

#![allow(clippy::unnecessary_debug_formatting, reason = "a path in quotes is a text of TOML")]

use std::{
    fs,
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tokio::task::spawn_blocking;

use crate::support::{
    backend::Backend,
    certificates::Authority,
    ports,
    proxy::Proxy,
    tls::{Curl, Office, Secure},
    wait::within,
};

const NAME: &str = "proxy.example";
const DOC: &str = "/doc";

/// The versions of TLS, as the options and the output of openssl name them.
const VERSIONS: [(&str, &str); 2] = [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")];

/// A proxy whose configuration can be loaded again.
struct Scene {
    backend: Backend,
    office: Office,
    certificate: (PathBuf, PathBuf),
    secure: Secure,
}

impl Scene {
    async fn start(lines: &str) -> Self {
        let (office, backend, addr) = (Office::new(), Backend::start().await, ports::free());
        backend.put(DOC, "one");
        let certificate = office.issue(&[NAME]);
        let file = file(&backend, addr, &certificate, lines);
        let proxy = Proxy::start(&file).await;
        Self { backend, office, certificate, secure: Secure::of(proxy, addr).await }
    }

    /// Loads the configuration with these lines in `[server.tls]`.
    async fn reload(&self, lines: &str) {
        let Self { secure, certificate, backend, .. } = self;
        secure.proxy.rewrite(&file(backend, secure.addr, certificate, lines));
        let reload = secure.proxy.reload(&[]).await;
        assert_eq!(reload.code, Some(0), "{reload:?}");
    }

    /// A request by openssl that begins a session and keeps it, or goes on with one that was kept.
    async fn ask(&self, option: &str, session: &Path, version: &str, more: &[&str]) -> String {
        let addr = self.secure.addr.to_string();
        let mut command = Command::new("openssl");
        command.args(["s_client", "-ign_eof", version, "-servername", NAME, "-connect", &addr]);
        command.arg(option).arg(session).args(more);
        let asked = spawn_blocking(move || {
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn().expect("openssl is missing: `make test` installs it");
            let request = format!("GET {DOC} HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n");
            let mut input = child.stdin.take().expect("a pipe");
            // It may be gone already where it is refused.
            let _ = input.write_all(request.as_bytes());
            child.wait_with_output().expect("openssl ends")
        });
        String::from_utf8_lossy(&within("openssl", asked).await.expect("no panic").stdout).into_owned()
    }

    /// Begins a session, and keeps it in a file.
    async fn begin(&self, version: &str, more: &[&str]) -> PathBuf {
        let session = self.office.path().join(format!("session{version}"));
        let told = self.ask("-sess_out", &session, version, more).await;
        assert!(is_answered(&told) && told.contains("\nNew, "), "{told}");
        session
    }

    /// True if a session goes on. Either way the request is answered.
    async fn goes_on(&self, session: &Path, version: &str) -> bool {
        let told = self.ask("-sess_in", session, version, &[]).await;
        assert!(is_answered(&told), "{told}");
        told.contains("\nReused, ")
    }
}

fn is_answered(told: &str) -> bool {
    told.contains("HTTP/1.1 200")
}

/// A configuration that listens at this address alone, and can be loaded again.
fn file(backend: &Backend, addr: SocketAddr, certificate: &(PathBuf, PathBuf), lines: &str) -> String {
    let setup = Proxy::to(backend.addr()).server("control_socket = \"{control}\"");
    Secure::configuration(&setup, addr, std::slice::from_ref(certificate), lines)
}

#[tokio::test]
async fn a_client_that_returns_goes_on_with_its_session() {
    let scene = Scene::start("").await;
    for (version, name) in VERSIONS {
        let session = scene.begin(version, &[]).await;
        let told = scene.ask("-sess_in", &session, version, &[]).await;
        assert!(is_answered(&told) && told.contains(&format!("\nReused, {name}")), "{told}");
        assert!(scene.goes_on(&session, version).await, "as often as it returns");
    }
}

#[tokio::test]
async fn a_session_goes_on_after_a_reload_that_leaves_the_certificates() {
    let scene = Scene::start("").await;
    for (version, _) in VERSIONS {
        let session = scene.begin(version, &[]).await;
        scene.reload(&format!("handshake_timeout = \"{}s\"", version.len())).await;
        assert!(scene.goes_on(&session, version).await, "{version}");
    }
}

#[tokio::test]
async fn a_session_ends_with_its_certificate() {
    let scene = Scene::start("reload_interval = \"1h\"").await;
    for (version, _) in VERSIONS {
        let session = scene.begin(version, &[]).await;
        scene.office.issue(&[NAME]);
        scene.reload("reload_interval = \"1h\"").await;
        assert!(!scene.goes_on(&session, version).await, "{version}");
    }
}

/// The keys of tickets are in no file.
#[tokio::test]
async fn a_session_ends_with_its_process() {
    let mut scene = Scene::start("").await;
    let session = scene.begin("-tls1_3", &[]).await;
    scene.secure.proxy.signal("KILL");
    scene.secure.proxy.restart().await;
    assert!(!scene.goes_on(&session, "-tls1_3").await);
}

/// A resumed session would show no certificate, and so would pass with any fate of the authority.
#[tokio::test]
async fn no_session_goes_on_where_clients_show_certificates() {
    let scene = Scene::start("").await;
    let authority = Authority::new("the authority of clients");
    let ca = authority.write(scene.office.path(), "clients");
    let (certificate, key) = authority.issue(&["ann"]).write(scene.office.path(), "ann");
    let [certificate, key] = [certificate, key].map(|file| file.display().to_string());
    let shown = ["-cert", &certificate, "-key", &key];
    let anonymous = VERSIONS.map(|(version, _)| version);
    for version in anonymous {
        scene.begin(version, &[]).await;
    }
    for auth in ["required", "optional"] {
        scene.reload(&format!("client_auth = \"{auth}\"\nclient_ca = {ca:?}")).await;
        for version in anonymous {
            let session = scene.office.path().join(format!("session{version}"));
            let told = scene.ask("-sess_in", &session, version, &[]).await;
            assert!(!told.contains("\nReused, "), "{told}");
            assert_eq!(is_answered(&told), auth == "optional", "without a certificate: {told}");

            let of_ann = scene.office.path().join("session-of-ann");
            let told = scene.ask("-sess_out", &of_ann, version, &shown).await;
            assert!(is_answered(&told), "{told}");
            if of_ann.exists() {
                let told = scene.ask("-sess_in", &of_ann, version, &shown).await;
                assert!(is_answered(&told) && !told.contains("\nReused, "), "{told}");
                fs::remove_file(of_ann).expect("a file");
            }
        }
    }
}

/// RFC 8446 section 8: any attacker can send the data of the first message again.
#[tokio::test]
async fn nothing_is_taken_before_the_handshake_has_ended() {
    let scene = Scene::start("").await;
    let session = scene.begin("-tls1_3", &[]).await;
    let early = scene.office.path().join("early");
    fs::write(&early, format!("PUT {DOC} HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 5\r\n\r\nearly")).expect("a file");
    let told = scene.ask("-sess_in", &session, "-tls1_3", &["-early_data", &early.display().to_string()]).await;
    assert!(is_answered(&told) && told.contains("Early data was not sent"), "{told}");
    assert_eq!(scene.backend.content(DOC).as_deref(), Some("one"));
}

/// An authority that is taken away lets no client in any more.
#[tokio::test]
async fn a_new_authority_of_clients_shuts_out_those_of_the_old_one() {
    let (office, old) = (Office::new(), Authority::new("the old authority"));
    let ca = old.write(office.path(), "clients");
    let lines = format!("client_auth = \"required\"\nclient_ca = {ca:?}\nreload_interval = \"100ms\"");
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let secure = Secure::start(Proxy::to(backend.addr()), &[office.issue(&[NAME])], &lines).await;
    let ann = old.issue(&["ann"]).write(office.path(), "ann");
    let read = || Curl::new("GET").trust(&office.ca()).identity(&ann).send(NAME, secure.addr, DOC);
    assert_eq!(read().await.code, 0);
    Authority::new("the new authority").write(office.path(), "clients");
    within("the refusal", async { while read().await.code == 0 {} }).await;
}
