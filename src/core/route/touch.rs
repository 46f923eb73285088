//! Path templates of `also_changes`: the other resources that a write on a route changes (DESIGN, section 6).

use std::borrow::Cow;

use super::{
    super::http::request_target::NormalPath, PatternProblem, path::PathPattern, segment::Segment, table::Captures,
};

/// How close a misspelled name must be to the one that was meant, from 0 to 1.
const SIMILARITY_MIN: f64 = 0.6;

/// The path of another resource, made from the names that the route's own path captures: `/projects/{id}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchTemplate(PathPattern);

impl TouchTemplate {
    /// The template that a configuration spells, for a route with this path.
    pub fn parse(template: &str, route: &PathPattern) -> Result<Self, PatternProblem> {
        let pattern = PathPattern::parse(template)?;
        Self::check_names(pattern.segments().iter(), route)?;
        Ok(Self(pattern))
    }

    /// Checks that each name among these segments is one of the route's own path.
    pub(super) fn check_names<'a>(
        mut segments: impl Iterator<Item = &'a Segment>,
        route: &PathPattern,
    ) -> Result<(), PatternProblem> {
        let is_rest = |segment: &Segment| matches!(segment, Segment::Rest(_));
        let unknown = segments.find_map(|segment| {
            let name = segment.name()?;
            let is_known = |own: &Segment| own.name() == Some(name) && is_rest(own) == is_rest(segment);
            (!route.segments().iter().any(is_known)).then_some(name)
        });
        unknown.map_or(Ok(()), |name| Err(unknown_name(name, route)))
    }

    /// The paths that the template can become, as a pattern.
    pub fn pattern(&self) -> &PathPattern {
        &self.0
    }

    /// The path for a request whose own path has these captures.
    pub fn path(&self, captures: &Captures<'_>) -> Option<NormalPath> {
        self.0.filled(|name| captures.get(name).map(Cow::Borrowed))
    }
}

fn unknown_name(name: &str, route: &PathPattern) -> PatternProblem {
    let open = route.segments().iter().any(|segment| matches!(segment, Segment::Rest(rest) if rest == name));
    let known = route.names().map(|known| (strsim::jaro_winkler(name, known), known));
    let nearest = known.filter(|(similarity, _)| *similarity >= SIMILARITY_MIN).max_by(|(a, _), (b, _)| a.total_cmp(b));
    let hint = match nearest {
        Some((_, known)) if known == name && open => format!("write {{*{name}}} at the end, as in the route's path"),
        Some((_, known)) if known == name => format!("write {{{name}}}, as in the route's path"),
        Some((_, known)) => format!("did you mean {{{known}}}?"),
        None => "known placeholders are the names in the route's own path".to_owned(),
    };
    PatternProblem::new(format!("{{{name}}} stands for nothing here")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{HostPattern, RouteTable},
        *,
    };
    use crate::core::http::request_target::{KeptInNames, normalize};

    fn pattern(path: &str) -> PathPattern {
        PathPattern::parse(path).expect("a pattern")
    }

    /// Returns the path that `template` makes of a request for `path` on a route with this pattern.
    fn touched(route: &str, path: &str, template: &str) -> String {
        let route = pattern(route);
        let template = TouchTemplate::parse(template, &route).expect("a template");
        let path = normalize(path.as_bytes(), KeptInNames::ALL).expect("a path");
        let table = RouteTable::new(vec![(HostPattern::Any, route)]);
        let captures = table.find("h", &path).expect("it matches").captures;
        template.path(&captures).expect("a path").as_str().to_owned()
    }

    #[test]
    fn names_stand_for_what_the_request_has_in_their_place() {
        let cases = [
            ("/projects/{id}/items/{item}", "/projects/a%7e/items/1", "/projects/{id}", "/projects/a~"),
            ("/projects/{id}/items/{item}", "/projects/p/items/1/", "/counts/{item}/{id}", "/counts/1/p"),
            ("/files/{*rest}", "/files/a/b", "/index/{*rest}", "/index/a/b"),
            ("/files/{*rest}", "/files", "/index/{*rest}", "/index"),
            ("/files/{*rest}", "/files/a", "/", "/"),
            ("/items/{id}.json", "/items/a.b.json", "/items/{id}", "/items/a.b"),
            ("/items/{id}", "/items/1", "/items/{id}.json", "/items/1.json"),
        ];
        for (route, path, template, expected) in cases {
            assert_eq!(touched(route, path, template), expected, "{template} for {path}");
        }
    }

    #[test]
    fn a_name_that_the_route_does_not_have_is_a_problem() {
        let route = pattern("/projects/{project}/items/{*rest}");
        let hint = |template: &str| TouchTemplate::parse(template, &route).unwrap_err().hint.unwrap();
        assert_eq!(hint("/projects/{projet}"), "did you mean {project}?");
        assert_eq!(hint("/projects/{rest}"), "write {*rest} at the end, as in the route's path");
        assert_eq!(hint("/x/{*project}"), "write {project}, as in the route's path");
        assert_eq!(hint("/x/{zz}"), "known placeholders are the names in the route's own path");
    }
}
