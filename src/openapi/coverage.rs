//! The operations of a document that the routes of a configuration guard.

use std::sync::Arc;

use super::{
    paths::{ApiOperation, Paths},
    template::RoutePath,
};
use crate::{
    config::{Route, Word as _},
    core::route::{HostPattern, PathPattern, Relation, RouteTable, relation},
};

/// The operations of a document, and those that no route guards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// The operations that change something, and pass unguarded.
    pub uncovered: Vec<Uncovered>,
    /// The number of operations that change something.
    pub writes: usize,
}

/// An operation that no route guards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncovered {
    /// Its name: `updatePet (PUT /pets/{id})`.
    pub operation: String,
    /// Why, as the rest of a sentence.
    pub reason: String,
}

/// The routes of a configuration, to look up the operations of a document.
pub(super) struct CoveringRoutes<'r> {
    routes: &'r [Arc<Route>],
    by_path: RouteTable,
    by_upstream_path: RouteTable,
}

impl<'r> CoveringRoutes<'r> {
    pub(super) fn of(routes: &'r [Arc<Route>]) -> Self {
        let table = |path: fn(&Route) -> &PathPattern| {
            RouteTable::new(routes.iter().map(|route| (route.host.clone(), path(route).clone())).collect())
        };
        Self { routes, by_path: table(|route| &route.path), by_upstream_path: table(|route| &route.upstream_path) }
    }

    /// The routes that take all requests of an operation, one for each host. A document may describe the paths that
    /// clients send, or those that the backend gets.
    pub(super) fn of_pattern(&self, pattern: &PathPattern) -> Vec<&'r Arc<Route>> {
        let by_path = self.winners(&self.by_path, pattern, |route| &route.path);
        if by_path.is_empty() {
            self.winners(&self.by_upstream_path, pattern, |route| &route.upstream_path)
        } else {
            by_path
        }
    }

    fn winners(
        &self,
        table: &RouteTable,
        pattern: &PathPattern,
        path: fn(&Route) -> &PathPattern,
    ) -> Vec<&'r Arc<Route>> {
        let mut winners: Vec<&Arc<Route>> = Vec::new();
        let overlapping = table.overlapping(&HostPattern::Any, pattern).into_iter();
        for route in overlapping.filter_map(|index| self.routes.get(index)) {
            let takes = relation((&route.host, pattern), (&route.host, path(route)));
            if !matches!(takes, Relation::Same | Relation::Narrower) {
                continue;
            }
            match winners.iter_mut().find(|winner| winner.host == route.host) {
                Some(winner) => {
                    let beats = relation((&route.host, path(route)), (&winner.host, path(winner)));
                    if beats == Relation::Narrower {
                        *winner = route;
                    }
                }
                None => winners.push(route),
            }
        }
        winners
    }
}

/// Returns which operations of a document these routes do not guard.
pub fn coverage(paths: &Paths<'_>, routes: &[Arc<Route>]) -> Coverage {
    let covering = CoveringRoutes::of(routes);
    let writes = || paths.operations.iter().filter(|operation| operation.is_write());
    let uncovered = |operation: &ApiOperation<'_>| {
        let reason = reason(paths, operation, &covering)?;
        Some(Uncovered { operation: operation.label(), reason })
    };
    Coverage { uncovered: writes().filter_map(uncovered).collect(), writes: writes().count() }
}

fn reason(paths: &Paths<'_>, operation: &ApiOperation<'_>, covering: &CoveringRoutes<'_>) -> Option<String> {
    if operation.is_elsewhere {
        return Some("the document has it on another server".to_owned());
    }
    let Some(path) = RoutePath::of(&paths.server.base, operation.path) else {
        return Some("no route can have its path".to_owned());
    };
    let routes = covering.of_pattern(&path.pattern);
    if routes.is_empty() {
        return Some(format!("no route matches all of {}", path.pattern));
    }
    let unguarded = routes.iter().find(|route| route.guard.is_none())?;
    Some(format!("route {:?} ({}) has policy = {:?}", unguarded.name, unguarded.path, unguarded.policy.word()))
}

#[cfg(test)]
mod tests {
    use super::{super::document::ApiDocument, *};
    use crate::config;

    const DOCUMENT: &str = "
openapi: 3.1.0
servers: [{url: /v1}]
paths:
  /pets: {get: {}, post: {operationId: addPet}}
  /pets/{id}: {get: {}, put: {operationId: putPet}}
  /pets/special: {put: {operationId: putSpecial}}
  /a/../b: {post: {}}
  /upload: {post: {servers: [{url: 'https://files.example'}]}}
  /toys/{toy}: {delete: {}}
";

    const HEAD: &str =
        "[upstreams.api]\nservers = [\"127.0.0.1:1\"]\n[defaults]\nupstream = \"api\"\npolicy = \"optimistic\"\n";

    fn uncovered(routes: &str) -> Vec<(String, String)> {
        let document = ApiDocument::parse("d", DOCUMENT).expect("a document");
        let paths = Paths::of(&document).expect("paths");
        let loaded = config::parse("c", &format!("{HEAD}{routes}")).expect("a configuration");
        let coverage = coverage(&paths, &loaded.config.routes);
        assert_eq!(coverage.writes, 6);
        coverage.uncovered.into_iter().map(|Uncovered { operation, reason }| (operation, reason)).collect()
    }

    const ALWAYS: [(&str, &str); 2] =
        [("POST /a/../b", "no route can have its path"), ("POST /upload", "the document has it on another server")];

    #[test]
    fn the_most_specific_route_decides() {
        let all = uncovered("[[routes]]\npath = \"/{*rest}\"\n");
        assert_eq!(all, ALWAYS.map(|(operation, reason)| (operation.to_owned(), reason.to_owned())));
        let mixed = uncovered(
            "[[routes]]\nname = \"rest\"\npath = \"/{*rest}\"\npolicy = \"last-writer-wins\"\n\
             [[routes]]\npath = \"/v1/pets/{pet}\"\n\
             [[routes]]\nname = \"special\"\npath = \"/v1/pets/special\"\npolicy = \"last-writer-wins\"\n\
             [[routes]]\npath = \"/v1/toys/{*rest}\"\n",
        );
        let expected = [
            ALWAYS[0],
            ("addPet (POST /pets)", "route \"rest\" (/{*rest}) has policy = \"last-writer-wins\""),
            (
                "putSpecial (PUT /pets/special)",
                "route \"special\" (/v1/pets/special) has policy = \"last-writer-wins\"",
            ),
            ALWAYS[1],
        ];
        assert_eq!(mixed, expected.map(|(operation, reason)| (operation.to_owned(), reason.to_owned())));
    }

    #[test]
    fn each_host_must_have_a_guard() {
        let routes = "[[routes]]\npath = \"/{*rest}\"\n[[routes]]\nname = \"old\"\nhost = \"old.example\"\npath = \"/v1/{*rest}\"\n\
                      policy = \"last-writer-wins\"\n";
        assert_eq!(uncovered(routes).len(), 6);
        let other = "[[routes]]\npath = \"/{*rest}\"\npolicy = \"last-writer-wins\"\n\
                     [[routes]]\nhost = \"new.example\"\npath = \"/v1/{*rest}\"\n";
        assert_eq!(uncovered(other).len(), 6, "the guarded host is not the only one");
    }

    #[test]
    fn a_document_may_have_the_paths_of_the_backend() {
        let routes = "[[routes]]\npath = \"/api/{*rest}\"\nstrip_prefix = \"/api\"\nadd_prefix = \"/v1\"\n";
        assert_eq!(uncovered(routes).len(), ALWAYS.len());
        let part = uncovered("[[routes]]\npath = \"/v1/pets/{id}.json\"\n");
        assert_eq!(part[3], ("putPet (PUT /pets/{id})".to_owned(), "no route matches all of /v1/pets/{id}".to_owned()));
    }
}
