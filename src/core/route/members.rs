//! Path templates of `members`: the resources that a collection has (DESIGN, section 8, "The next member").

use std::borrow::Cow;

use percent_encoding::{percent_decode_str, utf8_percent_encode};

use super::{
    super::http::request_target::{ENCODED, KeptInNames, NormalPath, normalize},
    PatternProblem, TouchTemplate,
    path::PathPattern,
    segment::Segment,
    table::Captures,
};

/// The paths of the members of a collection: `/jobs/{id}`. The last segment has a name of its own. The other names are
/// those that the collection's own path captures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembersTemplate {
    pattern: PathPattern,
    name: String,
    suffix: String,
}

/// The members of one collection: the files with one end in one folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembersFolder {
    path: String,
    suffix: String,
}

impl MembersTemplate {
    /// Reads the template that a configuration spells, for a collection with this path.
    pub fn parse(spelled: &str, collection: &PathPattern) -> Result<Self, PatternProblem> {
        let pattern = PathPattern::parse(spelled)?;
        let is_new = |name: &str| collection.names().all(|known| known != name);
        let (name, suffix) = match pattern.segments().last() {
            Some(Segment::Capture { name, suffix }) if is_new(name) => (name.clone(), suffix.as_str().to_owned()),
            _ => {
                return Err(PatternProblem::new("the last segment does not name the member")
                    .hint("write a name there that the path of the route does not have, as in \"/jobs/{id}\""));
            }
        };
        let others = pattern.segments().iter().filter(|segment| segment.name() != Some(&name));
        TouchTemplate::check_names(others, collection)?;
        Ok(Self { pattern, name, suffix })
    }

    /// The paths that the template can become, as a pattern.
    pub fn pattern(&self) -> &PathPattern {
        &self.pattern
    }

    /// True if each member of a collection with this path is a segment below it, and nothing else is required of it.
    pub fn is_directly_below(&self, collection: &PathPattern) -> bool {
        let folder = self.pattern.segments().split_last().map(|(_, folder)| folder);
        self.suffix.is_empty() && folder == Some(collection.segments())
    }

    /// The members of a collection whose path has these captures.
    pub fn folder(&self, captures: &Captures<'_>) -> Option<MembersFolder> {
        let stand_in =
            |name: &str| if name == self.name { Some("x".into()) } else { captures.get(name).map(Cow::Borrowed) };
        let some = self.pattern.filled(stand_in)?;
        let (folder, _) = some.as_str().rsplit_once('/')?;
        Some(MembersFolder { path: format!("{folder}/"), suffix: self.suffix.clone() })
    }
}

impl MembersFolder {
    /// The files with this end in the folder with this path. The end is a plain text, such as `.json`.
    pub fn of(path: &NormalPath, suffix: &str) -> Self {
        Self { path: format!("{}/", path.as_str().trim_end_matches('/')), suffix: suffix.to_owned() }
    }

    /// The path of the folder in normal form, with a slash at its end.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The same members of the same folder, by the path that the upstream knows.
    #[must_use]
    pub fn at(&self, path: &NormalPath) -> Self {
        Self::of(path, &self.suffix)
    }

    /// The file of the member with this name.
    pub fn file_of(&self, name: &str) -> String {
        format!("{name}{}", percent_decode_str(&self.suffix).decode_utf8_lossy())
    }

    /// The path of a file of the folder; `None` if it is no member. No name leads anywhere else.
    pub fn member(&self, file: &str) -> Option<NormalPath> {
        let is_name =
            !matches!(file, "" | "." | "..") && !file.contains(['/', '\\']) && !file.contains(char::is_control);
        let encoded = utf8_percent_encode(file, ENCODED).to_string();
        let is_member = is_name && encoded.len() > self.suffix.len() && encoded.ends_with(&self.suffix);
        is_member.then(|| normalize([&self.path, &*encoded].concat().as_bytes(), KeptInNames::ALL).ok()).flatten()
    }

    /// The file of the folder that has this path; `None` if the path leads elsewhere, or to no member.
    pub fn file_at(&self, path: &[u8]) -> Option<String> {
        let path = normalize(path, KeptInNames::ALL).ok()?;
        let encoded = path.as_str().strip_prefix(&self.path)?;
        let file = percent_decode_str(encoded).decode_utf8().ok()?.into_owned();
        (self.member(&file).as_ref() == Some(&path)).then_some(file)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{HostPattern, RouteTable},
        *,
    };

    fn folder(collection: &str, template: &str, path: &str) -> MembersFolder {
        let collection = PathPattern::parse(collection).expect("a pattern");
        let template = MembersTemplate::parse(template, &collection).expect("a template");
        let path = normalize(path.as_bytes(), KeptInNames::ALL).expect("a path");
        let table = RouteTable::new(vec![(HostPattern::Any, collection)]);
        template.folder(&table.find("h", &path).expect("it matches").captures).expect("a folder")
    }

    #[test]
    fn a_file_of_the_folder_is_a_member() {
        for (collection, template, path, file, member) in [
            ("/jobs", "/jobs/{id}", "/jobs", "1", "/jobs/1"),
            ("/", "/{id}", "/", "1", "/1"),
            ("/{queue}/next", "/{queue}/messages/{id}", "/a%20b/next", "ä 1", "/a%20b/messages/%C3%A4%201"),
            ("/jobs", "/jobs/{id}.json", "/jobs", "1.json", "/jobs/1.json"),
            ("/jobs", "/jobs/{id}", "/jobs", "100%", "/jobs/100%25"),
        ] {
            let folder = folder(collection, template, path);
            assert_eq!(folder.member(file).expect("a member").as_str(), member);
            assert_eq!(folder.file_at(member.as_bytes()).as_deref(), Some(file));
        }
    }

    /// Rule 10: what an index says leads to no other resource.
    #[test]
    fn a_name_leads_nowhere_else() {
        let jobs = folder("/jobs", "/jobs/{id}.json", "/jobs");
        for file in ["", ".", "..", "../1.json", "a/1.json", "a\\1.json", "a\0.json", "a\n.json", ".json", "1.xml", "1"]
        {
            assert_eq!(jobs.member(file), None, "{file:?}");
        }
        for path in
            ["/jobs", "/jobs/", "/jobs/a/1.json", "/jobs/../1.json", "/jobs/%2e%2e%2f1.json", "/other/1.json", "1.json"]
        {
            assert_eq!(jobs.file_at(path.as_bytes()), None, "{path}");
        }
        assert_eq!(jobs.file_at(b"/jobs/./%31.json").as_deref(), Some("1.json"), "one resource has one name");
        assert_eq!(jobs.file_of("1"), "1.json");
    }

    #[test]
    fn a_member_may_be_directly_below() {
        let is_below = |collection: &str, template: &str| {
            let collection = PathPattern::parse(collection).expect("a pattern");
            MembersTemplate::parse(template, &collection).expect("a template").is_directly_below(&collection)
        };
        assert!(is_below("/", "/{id}") && is_below("/{account}", "/{account}/{id}"));
        assert!(!is_below("/", "/a/{id}") && !is_below("/a", "/{id}") && !is_below("/", "/{id}.json"));
    }

    #[test]
    fn a_template_that_names_no_member_is_a_problem() {
        let collection = PathPattern::parse("/{queue}/next").expect("a pattern");
        let problem = |template| MembersTemplate::parse(template, &collection).expect_err("a problem").to_string();
        for template in ["/a/b", "/a/{queue}", "/a/{*rest}", "/"] {
            assert_eq!(problem(template), "the last segment does not name the member", "{template}");
        }
        assert_eq!(problem("/{queu}/{id}"), "{queu} stands for nothing here");
    }

    proptest! {
        #[test]
        fn whatever_a_name_holds_its_path_stays_in_the_folder(file in "[a./%\\\\\u{0}-\u{20}é:?#;]{0,8}") {
            let jobs = folder("/jobs", "/jobs/{id}", "/jobs");
            if let Some(path) = jobs.member(&file) {
                let name = path.as_str().strip_prefix("/jobs/").expect("the folder");
                prop_assert!(!name.is_empty() && !name.contains('/'));
                prop_assert_eq!(jobs.file_at(path.as_str().as_bytes()), Some(file));
            }
        }
    }
}
