//! Path templates of `writes_to`: the resource that the body of a write names (DESIGN, section 9).

use std::{borrow::Cow, fmt};

use percent_encoding::utf8_percent_encode;

use super::{
    super::{
        http::request_target::{ENCODED, NormalPath},
        tags::json::JsonPointer,
    },
    PatternProblem, TouchTemplate,
    path::PathPattern,
    segment::Segment,
    table::Captures,
};

/// The beginning of a placeholder for a member of the body.
const MEMBER: &str = "{json.";

/// The path of a resource whose name is partly in the body of a request: `/documents/{json./id}`. The other names are
/// those that the route's own path captures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WritesTo {
    spelled: String,
    pattern: PathPattern,
    /// The members of the body, each with the name of its segment in the pattern.
    members: Vec<(String, JsonPointer)>,
}

impl WritesTo {
    /// Reads the template that a configuration spells, for a route with this path.
    pub fn parse(spelled: &str, route: &PathPattern) -> Result<Self, PatternProblem> {
        let (mut plain, mut members, mut rest) = (String::new(), Vec::new(), spelled);
        while let Some((before, placeholder)) = rest.split_once(MEMBER) {
            let Some((text, after)) = placeholder.split_once('}') else {
                return Err(PatternProblem::new("a brace has no partner").hint("write \"/documents/{json./id}\""));
            };
            let pointer = JsonPointer::parse(text).ok_or_else(|| not_a_pointer(text))?;
            let name = free_name(members.len(), route);
            plain.push_str(before);
            plain.extend(["{", &name, "}"]);
            members.push((name, pointer));
            rest = after;
        }
        plain.push_str(rest);
        let pattern = PathPattern::parse(&plain)?;
        if members.is_empty() {
            return Err(PatternProblem::new("writes_to takes no name from the body")
                .hint("write the member that names the resource, as in \"/documents/{json./id}\""));
        }
        let own = |segment: &&Segment| !segment.name().is_some_and(|name| is_member(&members, name));
        TouchTemplate::check_names(pattern.segments().iter().filter(own), route)?;
        Ok(Self { spelled: spelled.to_owned(), pattern, members })
    }

    /// The paths that the template can become, as a pattern.
    pub fn pattern(&self) -> &PathPattern {
        &self.pattern
    }

    /// The members of the body that name the resource, in order.
    pub fn members(&self) -> impl Iterator<Item = &JsonPointer> {
        self.members.iter().map(|(_, pointer)| pointer)
    }

    /// The path for a request whose own path has these captures, and whose body has these values, in the order of the
    /// members. `None` if the values make no path with one reading.
    pub fn path(&self, captures: &Captures<'_>, values: &[String]) -> Option<NormalPath> {
        let mut values = values.iter();
        self.pattern.filled(|name| {
            if !is_member(&self.members, name) {
                return captures.get(name).map(Cow::Borrowed);
            }
            let value = values.next().filter(|value| !matches!(value.as_str(), "" | "." | ".."))?;
            Some(utf8_percent_encode(value, ENCODED).into())
        })
    }
}

/// Formats the template as a configuration spells it.
impl fmt::Display for WritesTo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.spelled)
    }
}

fn is_member(members: &[(String, JsonPointer)], name: &str) -> bool {
    members.iter().any(|(member, _)| member == name)
}

/// A name for the segment of a member that no segment of the route has.
fn free_name(index: usize, route: &PathPattern) -> String {
    let mut name = format!("json{index}");
    while route.names().any(|taken| taken == name) {
        name.push('_');
    }
    name
}

fn not_a_pointer(text: &str) -> PatternProblem {
    PatternProblem::new(format!("{{json.{text}}} is no member of a body"))
        .hint("write a JSON pointer (RFC 6901), as in {json./id} or {json./meta/id}")
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

    /// The path that `template` makes of these values, for a request for `path` on a route with this pattern.
    fn named(route: &str, path: &str, template: &str, values: &[&str]) -> Option<String> {
        let route = pattern(route);
        let template = WritesTo::parse(template, &route).expect("a template");
        let path = normalize(path.as_bytes(), KeptInNames::ALL).expect("a path");
        let table = RouteTable::new(vec![(HostPattern::Any, route)]);
        let captures = table.find("h", &path).expect("the route matches").captures;
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        template.path(&captures, &values).map(|path| path.as_str().to_owned())
    }

    #[test]
    fn a_path_is_made_of_captures_and_members() {
        let docs = "/dbs/{db}/docs";
        for (template, values, expected) in [
            ("/dbs/{db}/docs/{json./id}", &["7"][..], Some("/dbs/shop/docs/7")),
            ("/dbs/{db}/docs/{json./meta/id}", &["a b"], Some("/dbs/shop/docs/a%20b")),
            ("/x/{json./a~1b}/{json./c}", &["1", "2"], Some("/x/1/2")),
            ("/x/{json./id}", &["a/b"], Some("/x/a%2Fb")),
            ("/x/{json./id}", &["a/../b"], None),
            ("/x/{json./id}", &[".."], None),
            ("/x/{json./id}", &["."], None),
            ("/x/{json./id}", &[""], None),
            ("/x/{json./id}", &["%41"], Some("/x/%2541")),
        ] {
            assert_eq!(named(docs, "/dbs/shop/docs", template, values).as_deref(), expected, "{template} {values:?}");
        }
        assert_eq!(named("/{json0}", "/1", "/x/{json0}/{json./id}", &["2"]).as_deref(), Some("/x/1/2"));
    }

    #[test]
    fn a_template_is_shown_as_it_is_spelled() {
        let template = WritesTo::parse("/docs/{json./id}", &pattern("/docs")).expect("a template");
        assert_eq!(template.to_string(), "/docs/{json./id}");
        assert_eq!(template.members().map(ToString::to_string).collect::<Vec<_>>(), ["/id"]);
    }

    #[test]
    fn a_template_without_a_member_is_a_problem() {
        let problem = |template: &str| WritesTo::parse(template, &pattern("/docs/{kind}")).unwrap_err().to_string();
        assert_eq!(problem("/docs/{kind}"), "writes_to takes no name from the body");
        assert_eq!(problem("/docs/{json.id}"), "{json.id} is no member of a body");
        assert_eq!(problem("/docs/{json./id"), "a brace has no partner");
        assert_eq!(problem("/docs/x{json./id}"), "a capture begins its segment, and is the only one in it");
        assert_eq!(problem("/docs/{kin}/{json./id}"), "{kin} stands for nothing here");
    }
}
