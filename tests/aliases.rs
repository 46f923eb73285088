//! One resource, one key: of all spellings that a real nginx resolves to one file, the accepted ones have one key.
//!
//! A guard is walked around by a spelling that the backend takes for the guarded resource and the guard does not. So
//! nginx, which decodes, merges slashes and walks dot segments, serves a tree of files with awkward names; generated
//! spellings are sent to it as they are, and grouped by the file that came back.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops at the first surprise")]

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    io::{self, Read, Write},
    os::unix::{ffi::OsStrExt, net::UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use ifmatch::core::http::request_target::{KeptInNames, NormalPath, PathParameters, normalize, split_query};
use proptest::{
    collection::vec,
    prelude::*,
    sample::select,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

/// How many spellings are sent.
const SPELLINGS: usize = 12_000;

/// Files of the tree by their path, as octets. Those of which no spelling is accepted come last.
const FILES: &[&[u8]] = &[
    b"plain",
    b"Plain",
    b"a b",
    b"a!b",
    b"a+b",
    b"a%b",
    b"a%2fb",
    b"%61",
    b"~tilde",
    b"co:lon",
    b"at@sign",
    b"semi;colon",
    b"semi",
    b"what?",
    b"hash#",
    b"(brackets){braces}[squares]",
    b"quo'te\"s",
    b"...",
    b".hidden",
    b"dots..",
    b"\xc3\xa9",
    b"e\xcc\x81",
    b"directory/plain",
    b"directory/nested/plain",
    b"di r/\xc3\xa9/a!b",
    b"raw\xff",
    b"back\\slash",
    b"tab\tbed",
    b"..;/plain",
];

/// nginx decodes slashes, and has no path parameters.
const KEPT: KeptInNames = KeptInNames { path_params: PathParameters::Keep, ..KeptInNames::NOTHING };

/// How many of [`FILES`] have a spelling that is accepted.
const FILES_WITH_A_KEY: usize = FILES.len() - 4;

/// nginx as a child process with its own prefix, listening on a socket in it.
struct Nginx {
    process: Child,
    prefix: tempfile::TempDir,
}

impl Nginx {
    fn start() -> Self {
        let prefix = tempfile::tempdir().expect("a temporary directory");
        for (index, name) in FILES.iter().enumerate() {
            let file = prefix.path().join("tree").join(OsStr::from_bytes(name));
            fs::create_dir_all(file.parent().expect("a file has a directory")).expect("make a directory");
            fs::write(file, index.to_string()).expect("write a file");
        }
        fs::write(prefix.path().join("nginx.conf"), configuration(prefix.path())).expect("write the configuration");
        let process = spawn(prefix.path());
        let mut nginx = Self { process, prefix };
        nginx.wait_until_it_listens();
        nginx
    }

    fn socket(&self) -> PathBuf {
        self.prefix.path().join("socket")
    }

    fn wait_until_it_listens(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while UnixStream::connect(self.socket()).is_err() {
            let exited = self.process.try_wait().expect("the state of nginx");
            if exited.is_some() || Instant::now() > deadline {
                let log = fs::read_to_string(self.prefix.path().join("error.log")).unwrap_or_default();
                panic!("nginx does not listen (exit: {exited:?}):\n{log}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The file that a raw target leads to: the index that is its content, if the answer is 200.
    fn file_of(&self, raw_target: &[u8]) -> io::Result<Option<usize>> {
        let mut connection = UnixStream::connect(self.socket())?;
        connection.write_all(&[b"GET ", raw_target, b" HTTP/1.0\r\nHost: localhost\r\n\r\n"].concat())?;
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        let Some((head, body)) = answer.split_once("\r\n\r\n") else { return Ok(None) };
        Ok(head.starts_with("HTTP/1.1 200 ").then(|| body.parse().expect("the content of a file is its index")))
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.process.kill().expect("end nginx");
        self.process.wait().expect("the end of nginx");
    }
}

fn spawn(prefix: &Path) -> Child {
    // Debian has it in a directory that is not in every PATH.
    for program in ["nginx", "/usr/sbin/nginx"] {
        let started = Command::new(program)
            .arg("-p")
            .arg(prefix)
            .args(["-c", "nginx.conf", "-e", "error.log"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match started {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            started => return started.expect("nginx cannot be started"),
        }
    }
    panic!("this test needs nginx: install the package nginx-light or nginx-extras");
}

fn configuration(prefix: &Path) -> String {
    let prefix = prefix.display();
    format!(
        "daemon off; master_process off; worker_processes 1;
         error_log {prefix}/error.log; pid {prefix}/nginx.pid;
         events {{ worker_connections 64; }}
         http {{
             access_log off;
             client_body_temp_path {prefix}/body; proxy_temp_path {prefix}/proxy; fastcgi_temp_path {prefix}/fastcgi;
             uwsgi_temp_path {prefix}/uwsgi; scgi_temp_path {prefix}/scgi;
             merge_slashes on;
             server {{ listen unix:{prefix}/socket; root {prefix}/tree; }}
         }}"
    )
}

/// Texts that sometimes replace a slash of a path.
const ODD_SLASHES: &str = r"// /// /./ /.// /x/../ /x/y/../../ /x//../ /%2e/ /x/%2e%2E/ /x/.%2e/ /../ %2f %2F /x%2f..%2f
    \ %5C /;/ /x;y/../ /.;/ /%3b/../ /#/";

/// Texts that sometimes end a path.
const ODD_ENDINGS: &str = r"/ /. /.. /x/.. // ? ?query # #fragment #/.. ; ;x=1 %00 %20 % %2 . /%2e";

/// One of some words, as octets.
fn word(words: &'static str) -> impl Strategy<Value = Vec<u8>> {
    select(words.split_whitespace().collect::<Vec<_>>()).prop_map(|word| word.as_bytes().to_vec())
}

/// One octet of a name: raw, encoded, or (rarely, because it leads elsewhere) encoded twice.
fn octet(octet: u8) -> impl Strategy<Value = Vec<u8>> {
    let encoded = [format!("%{octet:02x}"), format!("%{octet:02X}"), format!("%25{octet:02X}")];
    let [lower, upper, twice] = encoded.map(String::into_bytes);
    prop_oneof![60 => Just(vec![octet]), 20 => Just(lower), 20 => Just(upper), 1 => Just(twice)]
}

fn slash() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![3 => Just(b"/".to_vec()), 1 => word(ODD_SLASHES)]
}

fn ending() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![5 => Just(Vec::new()), 1 => word(ODD_ENDINGS)]
}

/// Targets that nginx may take for one of the files.
fn spelling() -> impl Strategy<Value = Vec<u8>> {
    select(FILES).prop_flat_map(|file| {
        let segments: Vec<_> = file.split(|&octet| octet == b'/').map(<[u8]>::to_vec).collect();
        let names: Vec<_> = segments.into_iter().map(|name| name.into_iter().map(octet).collect::<Vec<_>>()).collect();
        let slashes = vec(slash(), names.len());
        (slashes, names, ending()).prop_map(|(slashes, names, ending)| {
            let steps = slashes.into_iter().zip(names).flat_map(|(slash, name)| [slash, name.concat()]);
            [steps.collect::<Vec<_>>().concat(), ending].concat()
        })
    })
}

fn key(raw_target: &[u8]) -> Option<NormalPath> {
    normalize(split_query(raw_target).0, KEPT).ok()
}

/// DESIGN, section 3, rule 10.
#[test]
fn accepted_spellings_of_one_file_have_one_key() {
    let nginx = Nginx::start();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, b"one resource, one key: the seed.");
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut spellings_by_file: BTreeMap<usize, BTreeMap<NormalPath, Vec<u8>>> = BTreeMap::new();
    let mut accepted = 0;
    for _ in 0..SPELLINGS {
        let spelled = spelling().new_tree(&mut runner).expect("a spelling").current();
        let file = nginx.file_of(&spelled).unwrap_or_else(|error| panic!("{}: {error}", spelled.escape_ascii()));
        let (Some(file), Some(key)) = (file, key(&spelled)) else { continue };
        accepted += 1;
        spellings_by_file.entry(file).or_default().entry(key).or_insert(spelled);
    }
    for (file, keys) in &spellings_by_file {
        let spellings: Vec<_> = keys.values().map(|spelled| spelled.escape_ascii().to_string()).collect();
        assert_eq!(spellings.len(), 1, "{} is reached under several keys: {spellings:#?}", FILES[*file].escape_ascii());
    }
    assert_eq!(spellings_by_file.len(), FILES_WITH_A_KEY, "every file that can have a key was reached");
    assert!(accepted > SPELLINGS / 3, "only {accepted} spellings were both served and accepted");
}
