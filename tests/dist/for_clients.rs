//! The packages for clients, installed where nothing else is.

use std::{fs, path::PathBuf, process::Command};

use crate::{
    PACKAGES,
    clients::{package_python, python_wheels, typescript_package},
    directory, file, output,
};

/// A program that uses what the package for Python has.
const PYTHON: &str = r#"
import asyncio
import ifmatch
from ifmatch import aio


def change(count: int) -> int:
    return count + 1


async def main() -> None:
    await aio.update("http://127.0.0.1:1/", change, initial=0, attempts=1)


for write in (lambda: ifmatch.update("http://127.0.0.1:1/", change, initial=0, attempts=1), lambda: asyncio.run(main())):
    try:
        write()
    except ifmatch.GaveUp as error:
        assert isinstance(error.last, ifmatch.Unreachable), error
"#;

/// The same for TypeScript.
const TYPESCRIPT: &str = r"
import { GaveUp, Lease, Unreachable, guardedFetch, update, watch, type WatchEvent } from 'ifmatch';

export const all: unknown[] = [Lease, guardedFetch, watch];
export const kinds: WatchEvent['type'][] = ['state', 'interrupted'];
try {
  await update('http://127.0.0.1:1/', (count: number) => count + 1, { initial: 0, attempts: 1 });
} catch (error) {
  if (!(error instanceof GaveUp && error.last instanceof Unreachable)) throw error;
}
";

/// A package whose name ends so, which the page for clients names.
fn package(ending: &str) -> PathBuf {
    let name = format!("ifmatch-{}{ending}", env!("CARGO_PKG_VERSION"));
    PACKAGES.join(name)
}

fn is_installed_and_typed(name: &str, ending: &str) {
    let directory = directory(name);
    output(Command::new("python3").args(["-m", "venv"]).arg(&directory));
    let mut pip = Command::new(directory.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-index", "--find-links"]);
    output(pip.arg(python_wheels()).arg(package(ending)));
    let program = directory.join("program.py");
    fs::write(&program, PYTHON).unwrap();
    output(Command::new(directory.join("bin/python")).arg(&program));
    let mut mypy = package_python();
    mypy.args(["-m", "mypy", "--strict", "--cache-dir", "/dev/null", "--python-executable"]);
    output(mypy.arg(directory.join("bin/python")).arg(&program).current_dir(&directory));
}

#[test]
fn the_wheel_is_installed_in_a_fresh_environment() {
    is_installed_and_typed("wheel", "-py3-none-any.whl");
}

#[test]
fn the_source_for_python_is_built_and_installed_in_a_fresh_environment() {
    is_installed_and_typed("source", ".tar.gz");
}

#[test]
fn the_package_of_npm_is_installed_in_a_fresh_project() {
    let directory = directory("npm");
    fs::write(directory.join("package.json"), r#"{ "private": true, "type": "module" }"#).unwrap();
    output(Command::new("npm").args(["install", "--offline", "--silent"]).arg(package(".tgz")).current_dir(&directory));
    fs::write(directory.join("program.ts"), TYPESCRIPT).unwrap();
    let mut tsc = Command::new(typescript_package().join("node_modules/.bin/tsc"));
    tsc.args(["--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom"]);
    output(tsc.arg("program.ts").current_dir(&directory));
    output(Command::new("node").arg("program.js").current_dir(&directory));
}

#[test]
fn the_page_for_clients_names_the_packages() {
    let page = fs::read_to_string(file("docs/clients.md")).unwrap();
    for ending in [".tgz", "-py3-none-any.whl"] {
        let package = package(ending);
        let name = package.file_name().unwrap().to_string_lossy();
        assert!(package.exists() && page.contains(&format!("install target/dist/{name}\n")), "{name}");
    }
}
