//! Apache, in one process, so that to kill it is to kill all of it.

use std::{fs, net::SocketAddr, path::Path, process::Command};

/// Returns the command that serves at this address, with these modules and directives. Paths in them are relative to the
/// directory, which also holds its own files.
pub fn apache(directory: &Path, addr: SocketAddr, modules: &[&str], directives: &str) -> Command {
    let modules = ["authz_core", "mpm_event"].iter().chain(modules);
    let modules = modules
        .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
        .collect::<Vec<_>>()
        .concat();
    let place = directory.to_str().expect("UTF-8");
    let configuration = format!(
        "ServerRoot {place}\nPidFile {place}/pid\nDefaultRuntimeDir {place}\nErrorLog /dev/stderr\nServerName localhost\n\
         Listen {addr}\n{modules}User www-data\nGroup www-data\n{directives}"
    );
    let file = directory.join("apache.conf");
    fs::write(&file, configuration).expect("a file");
    let mut command = Command::new("/usr/sbin/apache2");
    command.arg("-X").arg("-f").arg(file);
    command
}
