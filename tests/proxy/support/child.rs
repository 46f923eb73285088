//! A server as a child process, with its standard error kept in a file.

use std::{
    fs::{self, File},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child as Process, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::{
    ports,
    wait::{DEADLINE, until, until_some},
};

/// How often another process may take the port before us.
const ATTEMPTS: usize = 5;

pub struct Child {
    name: String,
    process: Process,
    log: PathBuf,
}

impl Child {
    pub fn spawn(name: &str, command: &mut Command, log: PathBuf) -> Self {
        Self::spawn_with(name, command, log, Stdio::null())
    }

    /// The same with something to read from.
    pub fn spawn_with(name: &str, command: &mut Command, log: PathBuf, input: Stdio) -> Self {
        let file = File::create(&log).expect("a log file");
        let copy = file.try_clone().expect("a second handle");
        let process = command.stdin(input).stdout(copy).stderr(file).spawn();
        let process = process.unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        Self { name: name.to_owned(), process, log }
    }

    /// Starts what `command` makes for a free port, and waits until it accepts connections there.
    pub async fn on_free_port(name: &str, log: &Path, command: impl Fn(SocketAddr) -> Command) -> (SocketAddr, Self) {
        for attempt in 1..=ATTEMPTS {
            let addr = ports::free();
            let mut child = Self::spawn(name, &mut command(addr), log.to_owned());
            match child.accepts(addr).await {
                Ok(()) => return (addr, child),
                Err(_) if attempt < ATTEMPTS => {}
                Err(status) => panic!("{name} ended before it accepted connections: {status}"),
            }
        }
        unreachable!("the last attempt returns or panics")
    }

    /// Waits until the address accepts connections, or the process is over: then with its exit status.
    pub async fn accepts(&mut self, addr: SocketAddr) -> Result<(), ExitStatus> {
        let what = format!("{} to accept connections on {addr}", self.name);
        let mut exited = None;
        until(&what, || {
            exited = self.process.try_wait().expect("a child can be waited for");
            exited.is_some() || TcpStream::connect(addr).is_ok()
        })
        .await;
        exited.map_or(Ok(()), Err)
    }

    /// Everything that it has said so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).expect("the log file")).into_owned()
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends a signal by its name: `"TERM"`, `"INT"`, `"STOP"`, `"KILL"`. After `"STOP"` none of its threads runs any more.
    pub fn signal(&self, name: &str) {
        // The shell's own `kill`: there is a shell on every machine, and no unsafe code here.
        let command = format!("kill -s {name} {}", self.process.id());
        let status = Command::new("sh").args(["-c", &command]).status().expect("there is a shell");
        assert!(status.success(), "`{command}` failed: is {} still running?\n{}", self.name, self.log());
        if name == "STOP" {
            until_stopped(self.process.id());
        }
    }

    /// Waits until it ends on its own.
    pub async fn exit_status(&mut self) -> ExitStatus {
        let what = format!("{} to end", self.name);
        until_some(&what, || self.process.try_wait().expect("a child can be waited for")).await
    }
}

/// Waits until all threads of a process stand still, or the process is over. A signal stops each of them only when the
/// kernel next looks at it, and one more answer may go out before.
pub fn until_stopped(process: u32) {
    let end = Instant::now() + DEADLINE;
    while !is_stopped(process) {
        assert!(Instant::now() < end, "process {process} does not stop");
        thread::sleep(Duration::from_millis(1));
    }
}

fn is_stopped(process: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return true };
    threads.flatten().all(|thread| {
        let Ok(state) = fs::read_to_string(thread.path().join("stat")) else { return true };
        // The name of the program stands in brackets before the state, and may hold spaces.
        state.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['T', 't', 'Z', 'X']))
    })
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail only when it is over already.
        let _over = self.process.kill();
        let _over = self.process.wait();
        if std::thread::panicking() {
            eprintln!("---- log of {} ----\n{}---- end of log ----", self.name, self.log());
        }
    }
}
