//! A disk that is soon full: a file system in memory with a size, which needs root.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// One of this size; `None` if this user may not mount.
    pub fn mount(mebibytes: usize) -> Option<Self> {
        let directory = TempDir::new().expect("a directory");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m"), "tmpfs"]).arg(directory.path());
        let mounted = command.output().is_ok_and(|output| output.status.success());
        if !mounted {
            println!("no file system can be mounted here, which takes root: there is nothing to fill");
        }
        mounted.then_some(Self(directory))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all the room that is left.
    pub fn fill(&self) {
        let mut file = File::create(self.junk()).expect("a file");
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    /// Gives it back.
    pub fn make_room(&self) {
        fs::remove_file(self.junk()).expect("it is there");
    }

    fn junk(&self) -> PathBuf {
        self.path().join("junk")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a process that ends later may have files in it.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
