//! The limits as `docs/security.md` tells them: they are those of the configuration.

use std::fs;

#[test]
fn the_security_page_tells_the_defaults() {
    let read = |name: &str| fs::read_to_string(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (page, reference) = (read("docs/security.md"), read("config/ifmatch.toml"));
    let mut rows = 0;
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = line.split(" | ").map(|cell| cell.trim_matches(['|', ' ', '`']));
        let (Some(key), Some(default)) = (cells.next(), cells.next()) else { panic!("{line}: two cells and more") };
        let is_default =
            |line: &str| line == format!("#{key} = {default}") || line == format!("#{key} = \"{default}\"");
        assert!(reference.lines().any(is_default), "`{key}` is not {default:?} in config/ifmatch.toml");
        rows += 1;
    }
    assert!(rows > 15, "the table has {rows} rows");
}
