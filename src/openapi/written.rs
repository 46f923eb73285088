//! Texts of configurations: comments of a bounded width, and values of TOML.

use toml::Value;

/// The longest line of a comment, if its words allow it.
const WIDTH: usize = 119;

/// Adds a comment, broken into lines between words.
pub(super) fn comment(text: &mut String, sentence: &str) {
    let mut line = "#".to_owned();
    for word in sentence.split_whitespace() {
        if line.len() + word.len() >= WIDTH && line.len() > 1 {
            text.extend([&line, "\n"]);
            "#".clone_into(&mut line);
        }
        line.extend([" ", word]);
    }
    text.extend([&line, "\n"]);
}

/// Adds a key with a text.
pub(super) fn key(text: &mut String, name: &str, value: &str) {
    text.extend([name, " = ", &Value::from(value).to_string(), "\n"]);
}

/// Adds a key with a list of texts.
pub(super) fn list(text: &mut String, name: &str, values: &[String]) {
    let values: Vec<String> = values.iter().map(|value| Value::from(value.as_str()).to_string()).collect();
    text.extend([name, " = [", &values.join(", "), "]\n"]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_broken_between_words() {
        let mut text = String::new();
        comment(&mut text, &"word ".repeat(50));
        assert!(text.lines().all(|line| line.starts_with("# word") && line.len() <= WIDTH), "{text}");
        assert_eq!(text.matches("word").count(), 50);
        let mut long = String::new();
        comment(&mut long, &"x".repeat(300));
        assert_eq!(long.lines().count(), 1);
    }

    #[test]
    fn values_are_those_of_toml() {
        let mut text = String::new();
        key(&mut text, "path", "/a\"b\\");
        list(&mut text, "names", &["x".to_owned(), "y\n".to_owned()]);
        let read: toml::Table = text.parse().expect("it is TOML");
        assert_eq!(read["path"].as_str(), Some("/a\"b\\"));
        assert_eq!(read["names"][1].as_str(), Some("y\n"));
    }
}
