//! The resources that a process holds, as the kernel reports them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// A process by its number.
#[derive(Clone, Copy, Debug)]
pub struct Process(pub u32);

/// TCP connections of a process, by how far they are from their end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    pub listening: usize,
    pub established: usize,
    /// The other side has closed, and the process has not.
    pub close_wait: usize,
    /// On their way to the end.
    pub closing: usize,
}

impl Sockets {
    pub fn connections(&self) -> usize {
        self.established + self.close_wait + self.closing
    }
}

impl Process {
    fn path(self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.0))
    }

    /// Its open file descriptors.
    pub fn descriptors(self) -> usize {
        fs::read_dir(self.path("fd")).expect("a running process").count()
    }

    /// The highest number among them.
    pub fn highest_descriptor(self) -> usize {
        let names = fs::read_dir(self.path("fd")).expect("a running process").flatten();
        names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).max().expect("standard output")
    }

    /// Its resident memory, in KiB.
    pub fn resident_kib(self) -> usize {
        let status = fs::read_to_string(self.path("status")).expect("a running process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is told");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// Its threads.
    pub fn threads(self) -> usize {
        fs::read_dir(self.path("task")).expect("a running process").count()
    }

    /// Its TCP sockets.
    pub fn sockets(self) -> Sockets {
        let states = self.tcp_states();
        let mut sockets = Sockets::default();
        for link in fs::read_dir(self.path("fd")).expect("a running process").flatten() {
            let target = fs::read_link(link.path()).unwrap_or_default();
            match inode(&target).and_then(|inode| states.get(&inode)).map(String::as_str) {
                Some("01") => sockets.established += 1,
                Some("08") => sockets.close_wait += 1,
                Some("0A") => sockets.listening += 1,
                Some(_) => sockets.closing += 1,
                None => {}
            }
        }
        sockets
    }

    /// The states of all TCP sockets of its network, by their inodes.
    fn tcp_states(self) -> BTreeMap<u64, String> {
        let table = fs::read_to_string(self.path("net/tcp")).expect("a running process");
        let rows = table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
        rows.map(|row| (row[9].parse().expect("an inode"), row[3].to_owned())).collect()
    }
}

fn inode(target: &Path) -> Option<u64> {
    target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}
