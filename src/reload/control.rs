//! The control socket, through which `ifmatch reload` requests a reload from a running process and gets its result.
//!
//! # Design
//!
//! *Why a socket?* A signal has no answer, and the number in a PID file may belong to another process by now. Only the
//! owner of the socket may open it and request a reload, and the answer is the result of that reload.
//!
//! One connection carries one request line and then the answer: a line with a word, and text to the end.

use std::{
    fs::{self, Permissions},
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::unix::{
        fs::PermissionsExt as _,
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use thiserror::Error;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _},
    net,
    time::timeout,
};

use super::{NotReloaded, Reloader};

/// The mode of the socket: only its owner may open it.
const MODE: u32 = 0o600;
/// Limits on the length of a request, in bytes, and on the time until it has arrived.
const REQUEST_MAX: u64 = 64;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

const RELOAD: &str = "reload";
const FORCED_RELOAD: &str = "reload --force";
const DONE: &str = "done";
const PROBLEMS: &str = "problems";
const REFUSED: &str = "refused";

/// The answer of a running process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlAnswer {
    /// The process serves by the file.
    Done(String),
    /// The file has problems.
    Problems(String),
    /// The process refused the reload.
    Refused(String),
}

/// A control socket that cannot be made.
#[derive(Debug, Error)]
#[error(
    "make the directory of {}, writable for the user that runs ifmatch, or write another control_socket: this one cannot \
     be made",
    .path.display()
)]
pub struct UnboundControl {
    path: PathBuf,
    source: io::Error,
}

/// Binds the socket at this path, in place of one whose process has gone.
pub fn bind(path: &Path) -> Result<UnixListener, UnboundControl> {
    bind_beside(path).map_err(|source| UnboundControl { path: path.to_owned(), source })
}

fn bind_beside(path: &Path) -> io::Result<UnixListener> {
    // The socket is bound under another name and then renamed. So there is no moment at which other users could open
    // it. Nor is there one without a socket while a successor replaces a process that is about to end.
    let own = path.with_extension(format!("{}.new", std::process::id()));
    let _ = fs::remove_file(&own);
    let listener = UnixListener::bind(&own)?;
    listener.set_nonblocking(true)?;
    fs::set_permissions(&own, Permissions::from_mode(MODE))?;
    fs::rename(&own, path)?;
    Ok(listener)
}

/// Answers requests for as long as the current runtime runs.
pub async fn serve(listener: UnixListener, reloader: Arc<Reloader>) -> io::Result<()> {
    let listener = net::UnixListener::from_std(listener)?;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let reloader = Arc::clone(&reloader);
                tokio::spawn(async move {
                    if let Err(error) = answer(stream, &reloader).await {
                        tracing::warn!(%error, "a request on the control socket failed");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the control socket cannot accept a connection");
                tokio::time::sleep(REQUEST_TIMEOUT).await;
            }
        }
    }
}

async fn answer(mut stream: net::UnixStream, reloader: &Reloader) -> io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut line = String::new();
    let mut reader = tokio::io::BufReader::new(tokio::io::AsyncReadExt::take(reader, REQUEST_MAX));
    timeout(REQUEST_TIMEOUT, reader.read_line(&mut line)).await??;
    let (word, text) = match line.trim_end() {
        RELOAD => told(reloader.reload(false).await),
        FORCED_RELOAD => told(reloader.reload(true).await),
        _ => (REFUSED, format!("the process accepts only {RELOAD:?} and {FORCED_RELOAD:?}")),
    };
    writer.write_all(format!("{word}\n{text}\n").as_bytes()).await
}

fn told(reloaded: Result<super::Reloaded, NotReloaded>) -> (&'static str, String) {
    match reloaded {
        Ok(reloaded) => {
            let warnings = reloaded.warnings.iter().map(|warning| format!("warning: {warning}\n\n"));
            (DONE, format!("{}{reloaded}", warnings.collect::<String>()))
        }
        Err(NotReloaded::Problems(problems)) => (PROBLEMS, problems.to_string()),
        Err(refused) => (REFUSED, refused.to_string()),
    }
}

/// Requests a reload from the process that answers at this path, and waits for the result.
pub fn ask(path: &Path, force: bool) -> io::Result<ControlAnswer> {
    let mut stream = UnixStream::connect(path)?;
    writeln!(stream, "{}", if force { FORCED_RELOAD } else { RELOAD })?;
    let mut reader = BufReader::new(stream);
    let (mut word, mut text) = (String::new(), String::new());
    reader.read_line(&mut word)?;
    reader.read_to_string(&mut text)?;
    let text = text.trim_end().to_owned();
    match word.trim_end() {
        DONE => Ok(ControlAnswer::Done(text)),
        PROBLEMS => Ok(ControlAnswer::Problems(text)),
        REFUSED => Ok(ControlAnswer::Refused(text)),
        _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the process ended before it answered")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_without_a_directory_is_told_with_the_remedy() {
        let error = bind(Path::new("/nonexistent/control.sock")).expect_err("there is no such directory");
        assert!(error.to_string().starts_with("make the directory of /nonexistent/control.sock"), "{error}");
    }
}
