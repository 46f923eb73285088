//! The end of each command's help: an example, and the document to read on in.
//!
//! Documents are named by their paths in the repository; packages keep them below `/usr/share/doc/ifmatch`.

pub(super) const IFMATCH: &str = "\
Example: guard a server on port 9000, with no configuration
  ifmatch run --upstream http://127.0.0.1:9000

Read on: README.md";

pub(super) const RUN: &str = "\
Examples:
  ifmatch run /etc/ifmatch/ifmatch.toml
  ifmatch run --upstream http://127.0.0.1:9000 --listen 127.0.0.1:8080
  ifmatch run --upstream http://127.0.0.1:9000 --admin 127.0.0.1:9901
  ifmatch run --upstream http://127.0.0.1:9000 --webdav

Read on: config/ifmatch.toml (every key), docs/operations.md";

pub(super) const CHECK: &str = "\
Examples: the file alone, and with the operations of an API
  ifmatch check /etc/ifmatch/ifmatch.toml
  ifmatch check /etc/ifmatch/ifmatch.toml --openapi openapi.yaml

Read on: config/ifmatch.toml (every key)";

pub(super) const OPENAPI: &str = "\
Examples: a configuration for an API, and what it means for the API's clients
  ifmatch openapi init openapi.yaml
  ifmatch openapi overlay ifmatch.toml openapi.yaml

Read on: docs/how-to/openapi.md";

pub(super) const OPENAPI_INIT: &str = "\
Example:
  ifmatch openapi init openapi.yaml

Read on: docs/how-to/openapi.md";

pub(super) const OPENAPI_OVERLAY: &str = "\
Example:
  ifmatch openapi overlay ifmatch.toml openapi.yaml

Read on: docs/how-to/openapi.md";

pub(super) const DEMO: &str = "\
Example:
  ifmatch demo

Read on: README.md";

pub(super) const RELOAD: &str = "\
Example: load the file again, through the control socket that it names
  ifmatch reload /etc/ifmatch/ifmatch.toml

Read on: docs/reload.md";

pub(super) const EXPLAIN: &str = "\
Example:
  ifmatch explain ifmatch.toml PUT http://example.com/documents/1

Read on: docs/guarantees.md";

pub(super) const HEALTH: &str = "\
Examples:
  ifmatch health
  ifmatch health --ready --admin unix:/run/ifmatch/admin
  ifmatch health --writes

Read on: docs/admin.md";

pub(super) const LEASES: &str = "\
Example:
  ifmatch leases list

Read on: docs/admin.md";

pub(super) const LEASES_LIST: &str = "\
Example: the leases of all documents that mary holds
  ifmatch leases list --prefix app:/documents/ --holder mary

Read on: docs/admin.md";

pub(super) const LEASES_BREAK: &str = "\
Example: give the holder half a minute to finish
  ifmatch leases break app:/documents/1 --period 30s

Read on: docs/admin.md";

pub(super) const LEASES_SHOW: &str = "\
Example:
  ifmatch leases show app:/documents/1

Read on: docs/admin.md";

pub(super) const LEASES_FORGET: &str = "\
Example: after a restored backup
  ifmatch leases forget --prefix app:/documents/

Read on: docs/admin.md";

pub(super) const SCHEMA: &str = "\
Example: complete and check the file in an editor
  ifmatch schema

Read on: config/ifmatch.toml (every key)";

pub(super) const DOCTOR: &str = "\
Example:
  ifmatch doctor https://example.com/documents/1

Read on: docs/how-to/doctor.md";

pub(super) const DOUBTS: &str = "\
Example:
  ifmatch doubts

Read on: docs/unknown-outcomes.md";

pub(super) const WHY: &str = "\
Examples: one refusal by the request_id of its access line, and the last ones of a resource
  ifmatch why 0a1b2c3d4e5f
  ifmatch why --key docs:/documents/1

Read on: docs/refusals.md (every code), docs/how-to/refused-requests.md";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::{Command, CommandFactory as _, Parser as _};

    use crate::cli::CommandLine;

    /// The command itself and all below it, without those that are hidden.
    fn with_subcommands(command: &Command) -> Vec<&Command> {
        let below = command.get_subcommands().filter(|below| !below.is_hide_set());
        [command].into_iter().chain(below.flat_map(with_subcommands)).collect()
    }

    #[test]
    fn the_help_of_each_command_has_an_example_and_tells_where_to_read_on() {
        for command in with_subcommands(&CommandLine::command()) {
            let name = command.get_name();
            let end = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(end.starts_with("Example") && end.contains("\n  ifmatch "), "{name}: {end:?}");
            let documents = end.split_once("\nRead on: ").map(|(_, documents)| documents).unwrap_or_default();
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            for document in documents.split(", ").map(|document| document.split(" (").next().unwrap_or_default()) {
                assert!(root.join(document).is_file(), "{name}: there is no document {document:?}");
            }
        }
    }

    /// The examples are commands that clap understands.
    #[test]
    fn the_examples_can_be_parsed() {
        let root = CommandLine::command();
        let ends = with_subcommands(&root).into_iter().filter_map(Command::get_after_help).map(ToString::to_string);
        for line in ends.flat_map(|end| end.lines().map(str::to_owned).collect::<Vec<_>>()) {
            let Some(example) = line.strip_prefix("  ") else { continue };
            CommandLine::try_parse_from(example.split(' ')).unwrap_or_else(|error| panic!("{example}: {error}"));
        }
    }
}
