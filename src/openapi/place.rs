//! The places of a document: operations whose paths are one pattern.

use std::collections::HashMap;

use http::Method;

use super::{
    paths::{ApiOperation, Paths},
    template::RoutePath,
};
use crate::core::route::PathPattern;

/// One pattern, with all operations that a route of it takes.
#[derive(Clone, Debug)]
pub(super) struct PathPlace<'p> {
    /// The pattern.
    pub(super) path: RoutePath,
    /// The operations.
    pub(super) operations: Vec<&'p ApiOperation<'p>>,
}

/// All places, found by their patterns.
#[derive(Debug)]
pub(super) struct PathPlaces<'p> {
    /// The places, in the order of the document.
    pub(super) all: Vec<PathPlace<'p>>,
    by_shape: HashMap<String, usize>,
}

/// The path of a member, in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemberPath {
    folder: String,
    /// The name of the last segment.
    pub(super) name: String,
    suffix: String,
}

impl MemberPath {
    /// The path with this name.
    pub(super) fn with(&self, name: &str) -> String {
        format!("{}/{{{name}}}{}", self.folder, self.suffix)
    }
}

impl<'p> PathPlaces<'p> {
    /// Returns the places of these paths, and the operations that have none: those whose paths no route can have.
    pub(super) fn of(paths: &'p Paths<'p>) -> (Self, Vec<&'p ApiOperation<'p>>) {
        let mut places = Self { all: Vec::new(), by_shape: HashMap::new() };
        let mut without = Vec::new();
        for operation in paths.operations.iter().filter(|operation| !operation.is_elsewhere) {
            match RoutePath::of(&paths.server.base, operation.path) {
                Some(path) => places.add(path, operation),
                None => without.push(operation),
            }
        }
        (places, without)
    }

    fn add(&mut self, path: RoutePath, operation: &'p ApiOperation<'p>) {
        let index = *self.by_shape.entry(shape(&path.pattern)).or_insert(self.all.len());
        match self.all.get_mut(index) {
            Some(place) => {
                place.path.is_wider |= path.is_wider;
                place.operations.push(operation);
            }
            None => self.all.push(PathPlace { path, operations: vec![operation] }),
        }
    }

    /// Returns the place that has this pattern, with any names in it.
    pub(super) fn find(&self, pattern: &PathPattern) -> Option<usize> {
        self.by_shape.get(&shape(pattern)).copied()
    }

    /// The place whose members include this one: its path, made of the names of this one, and its index.
    pub(super) fn collection_of(&self, place: &PathPlace<'p>) -> Option<(String, usize)> {
        place.path.pattern.collection().filter(|_| place.verb().is_none())?;
        place.folders().take(2).find_map(|(path, pattern)| Some((path, self.find(&pattern)?)))
    }

    /// The path of a member of the collection at this index, made of the names of the collection and the member's own.
    pub(super) fn member_path(&self, collection: usize, member: &PathPlace<'p>) -> Option<MemberPath> {
        let place = self.all.get(collection)?;
        let (_, last) = member.path.spelled.rsplit_once("/{")?;
        let (name, suffix) = last.split_once('}')?;
        let path = place.path.spelled.as_str();
        // The end of a list's name is no part of the names below it: `/posts.json` has `/posts/{id}.json`.
        let is_direct = member.path.pattern.collection().and_then(|above| self.find(&above)) == Some(collection);
        let folder = if is_direct { path } else { path.strip_suffix(place.extension()).unwrap_or(path) };
        Some(MemberPath { folder: folder.to_owned(), name: name.to_owned(), suffix: suffix.to_owned() })
    }

    /// The places that have others as their members: a place `/pets` beside `/pets/{id}`.
    pub(super) fn with_members(&self) -> HashMap<usize, Vec<usize>> {
        let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, place) in self.all.iter().enumerate() {
            if let Some((_, collection)) = self.collection_of(place) {
                members.entry(collection).or_default().push(index);
            }
        }
        members
    }
}

impl<'p> PathPlace<'p> {
    /// The operation with this method.
    pub(super) fn operation(&self, method: &Method) -> Option<&'p ApiOperation<'p>> {
        self.operations.iter().copied().find(|operation| operation.method == *method)
    }

    /// The operation that reads.
    pub(super) fn read(&self) -> Option<&'p ApiOperation<'p>> {
        self.operation(&Method::GET).or_else(|| self.operation(&Method::HEAD))
    }

    /// The operations that change something.
    pub(super) fn writes(&self) -> impl Iterator<Item = &'p ApiOperation<'p>> {
        self.operations.iter().copied().filter(|operation| operation.is_write())
    }

    /// The operations that replace, change or remove what the path names.
    pub(super) fn replacing(&self) -> impl Iterator<Item = &'p ApiOperation<'p>> {
        self.writes().filter(|operation| operation.method != Method::POST)
    }

    /// The text of the last segment, if it is no name.
    pub(super) fn last_text(&self) -> Option<&str> {
        let last = self.path.spelled.rsplit('/').next().unwrap_or_default();
        (!last.contains('{') && !last.is_empty()).then_some(last)
    }

    /// The end of the last name, as in `/posts/{id}.json` and `/posts/new.json`; nothing if it has none.
    pub(super) fn extension(&self) -> &str {
        let last = self.path.spelled.rsplit(['/', '}']).next().unwrap_or_default();
        last.rfind('.').and_then(|dot| last.get(dot..)).unwrap_or_default()
    }

    /// The verb of a path such as `/posts/{id}:send`.
    pub(super) fn verb(&self) -> Option<&str> {
        let (_, last) = self.path.spelled.rsplit_once('/')?;
        last.rsplit_once("}:").map(|(_, verb)| verb)
    }

    /// The paths of what this one may belong to, the nearest first: its own without a verb, and the folders.
    pub(super) fn above(&self) -> impl Iterator<Item = (String, PathPattern)> {
        let own = self.verb().and_then(|verb| self.path.spelled.strip_suffix(verb)?.strip_suffix(':'));
        own.map(str::to_owned).and_then(with_pattern).into_iter().chain(self.folders())
    }

    /// The folders of the path, the nearest first, made of the names of this one. Each comes as it is, and then with the end
    /// of the last name: `/posts/{id}` and `/posts/{id}.json` are above `/posts/{id}/lock.json`.
    fn folders(&self) -> impl Iterator<Item = (String, PathPattern)> {
        let mut path = self.path.spelled.as_str();
        let parents = std::iter::from_fn(move || {
            path = path.rsplit_once('/')?.0;
            Some(path)
        });
        parents.flat_map(move |path| [path.to_owned(), format!("{path}{}", self.extension())]).filter_map(with_pattern)
    }
}

fn with_pattern(path: String) -> Option<(String, PathPattern)> {
    let pattern = PathPattern::parse(&path).ok()?;
    Some((path, pattern))
}

/// A pattern without its names.
pub(super) fn shape(pattern: &PathPattern) -> String {
    let spelled = pattern.to_string();
    let mut shape = String::new();
    let mut rest = spelled.as_str();
    while let Some((before, named)) = rest.split_once('{') {
        let (name, after) = named.split_once('}').unwrap_or((named, ""));
        shape.extend([before, if name.starts_with('*') { "{*}" } else { "{}" }]);
        rest = after;
    }
    shape.push_str(rest);
    shape
}

#[cfg(test)]
mod tests {
    use super::{super::document::ApiDocument, *};

    #[test]
    fn operations_of_one_pattern_are_together() {
        let text = "openapi: 3.1.0\npaths:\n  /pets: {get: {}}\n  /pets/{a}: {get: {}}\n  /pets/{b}/: {put: {}}\n  \
                    /pets/{a}/../x: {get: {}}\n  /pets/{a}/toys/{toy}: {get: {}}\n  /pets/{a}/send: {post: {}}\n";
        let document = ApiDocument::parse("d", text).expect("a document");
        let paths = Paths::of(&document).expect("paths");
        let (places, without) = PathPlaces::of(&paths);
        assert_eq!(without.iter().map(|operation| operation.label()).collect::<Vec<_>>(), ["GET /pets/{a}/../x"]);
        let shown: Vec<_> =
            places.all.iter().map(|place| (place.path.spelled.as_str(), place.operations.len())).collect();
        assert_eq!(shown, [("/pets", 1), ("/pets/{a}", 2), ("/pets/{a}/send", 1), ("/pets/{a}/toys/{toy}", 1)]);
        assert_eq!(places.with_members(), HashMap::from([(0, vec![1])]));
        let send = &places.all[2];
        assert_eq!(send.last_text(), Some("send"));
        assert_eq!(
            send.above().map(|(path, _)| path).collect::<Vec<_>>(),
            ["/pets/{a}", "/pets/{a}", "/pets", "/pets"]
        );
        assert_eq!(places.find(&PathPattern::parse("/pets/{other}").expect("a pattern")), Some(1));
    }

    #[test]
    fn a_verb_belongs_to_the_resource_before_it() {
        let text =
            "openapi: 3.1.0\npaths:\n  /pets: {get: {}}\n  /pets/{id}: {get: {}}\n  /pets/{id}:feed: {post: {}}\n";
        let document = ApiDocument::parse("d", text).expect("a document");
        let paths = Paths::of(&document).expect("paths");
        let (places, _) = PathPlaces::of(&paths);
        let feed = places.all.iter().find(|place| place.verb() == Some("feed")).expect("the verb");
        assert_eq!(feed.above().next().map(|(path, _)| path).as_deref(), Some("/pets/{id}"));
        assert_eq!(places.with_members().values().flatten().count(), 1, "a verb is no member");
    }

    #[test]
    fn places_with_an_end_are_related() {
        let text =
            "openapi: 3.1.0\npaths:\n  /t.json: {get: {}}\n  /t/{id}.json: {get: {}}\n  /t/{id}/lock.json: {put: {}}\n";
        let document = ApiDocument::parse("d", text).expect("a document");
        let paths = Paths::of(&document).expect("paths");
        let (places, _) = PathPlaces::of(&paths);
        assert_eq!(places.with_members(), HashMap::from([(0, vec![1])]));
        let above: Vec<String> = places.all[2].above().map(|(path, _)| path).collect();
        assert_eq!(above, ["/t/{id}", "/t/{id}.json", "/t", "/t.json"]);
    }
}
