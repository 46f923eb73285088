//! The rules of the design that tests name: a line `/// Rule 7: ...` above a test says what it shows of rule 7.

use std::{collections::BTreeSet, ops::RangeInclusive};

use syn::{
    Attribute, Expr, ExprLit, ItemFn, Lit, Meta,
    visit::{self, Visit},
};

use super::{assert_none, sources};

/// The rules of DESIGN, section 3. The design stands elsewhere, so a new rule there needs a new number here.
const RULES: RangeInclusive<u32> = 1..=21;

/// The rules that the tests of a file name.
#[derive(Default)]
struct Named(BTreeSet<u32>);

impl<'ast> Visit<'ast> for Named {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if function.attrs.iter().any(is_test) {
            self.0.extend(function.attrs.iter().filter_map(doc_line).filter_map(|line| rule_of(&line)));
        }
        visit::visit_item_fn(self, function);
    }
}

/// True if it is `#[test]`, or ends like it: `#[tokio::test]`, with arguments or without.
fn is_test(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "test")
}

/// Returns the text of one line of a doc comment.
fn doc_line(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// The rule that a line begins with, if it says something of it: `Rule 7: a swap decides.`
fn rule_of(line: &str) -> Option<u32> {
    let (number, shown) = line.trim().strip_prefix("Rule ")?.split_once(": ")?;
    let number = number.parse().ok()?;
    (!shown.is_empty()).then_some(number)
}

fn named_in(text: &str) -> BTreeSet<u32> {
    let mut named = Named::default();
    named.visit_file(&syn::parse_file(text).expect("Rust"));
    named.0
}

#[test]
fn each_rule_of_the_design_is_named_by_a_test() {
    let (mut named, mut problems) = (BTreeSet::new(), Vec::new());
    for (path, text) in sources(&["src", "tests"]) {
        let here = named_in(&text);
        let unknown = here.iter().filter(|rule| !RULES.contains(rule));
        problems.extend(unknown.map(|rule| format!("{path}: the design has no rule {rule}")));
        named.extend(here);
    }
    let missing = RULES.filter(|rule| !named.contains(rule));
    problems.extend(missing.map(|rule| format!("no test names rule {rule} of the design")));
    assert_none(&problems);
}

#[test]
fn only_a_line_of_a_test_names_a_rule() {
    let named = named_in(
        "/// Rule 1: it is no test.\nfn helper() {}\n\
         /// More.\n/// Rule 2: shown.\n#[tokio::test(start_paused = true)]\nasync fn two() {}\n\
         mod tests {\n/// RFC 9112 section 6.3, rule 3: another rule.\n#[test]\nfn three() {}\n\
         /// Rule 4 says nothing.\n#[test]\nfn four() {}\n/// Rule 5: shown.\n#[test]\nfn five() {}\n}",
    );
    assert_eq!(named, BTreeSet::from([2, 5]));
}
