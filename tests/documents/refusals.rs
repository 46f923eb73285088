//! The page of refusals: an entry with an anchor for each code, and a sample that the program prints.

use std::collections::{BTreeMap, BTreeSet};

use syn::{
    Expr, ExprCall, ExprLit, Lit,
    visit::{self, Visit},
};

use crate::{
    blocks::proxy_before,
    pages::{read, root},
    support::{
        document::{blocks, shell, steps},
        nginx::Nginx,
    },
};

const PAGE: &str = "docs/refusals.md";

/// The statuses and titles of the codes, as the program declares them.
#[derive(Default)]
struct Declared(BTreeMap<String, (BTreeSet<String>, Vec<String>)>);

impl<'ast> Visit<'ast> for Declared {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        let is_facts = matches!(&*call.func, Expr::Path(function) if function.path.is_ident("Facts"));
        let literals: Vec<String> = call.args.iter().filter_map(literal).collect();
        if let (true, [code, status, title, ..]) = (is_facts, literals.as_slice()) {
            let (statuses, titles) = self.0.entry(code.clone()).or_default();
            statuses.insert(status.clone());
            if !titles.contains(title) {
                titles.push(title.clone());
            }
        }
        visit::visit_expr_call(self, call);
    }
}

/// The text of a literal.
fn literal(argument: &Expr) -> Option<String> {
    match argument {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => Some(number.base10_digits().to_owned()),
        _ => None,
    }
}

fn declared() -> BTreeMap<String, (BTreeSet<String>, Vec<String>)> {
    let mut declared = Declared::default();
    declared.visit_file(&syn::parse_file(&read("src/core/refusal.rs")).expect("Rust"));
    assert!(declared.0.len() > 40, "the codes are not found");
    declared.0
}

/// The entries of the page by their codes, each with its lines.
fn entries(page: &str) -> BTreeMap<String, Vec<&str>> {
    let sections = page.split("\n### `").skip(1).map(|section| section.split_once("`\n\n").expect("a heading"));
    sections.map(|(code, text)| (code.to_owned(), text.lines().collect())).collect()
}

#[test]
fn each_code_has_an_entry_with_its_statuses_and_titles() {
    let expected = declared().into_iter().map(|(code, (statuses, titles))| {
        let statuses: Vec<String> = statuses.into_iter().collect();
        (code, format!("{}: *{}*.", statuses.join(" or "), titles.join("* / *")))
    });
    let page = read(PAGE);
    let found = entries(&page).into_iter().map(|(code, lines)| (code, lines[0].to_owned()));
    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

#[test]
fn each_entry_has_a_remedy_for_the_client_and_for_the_operator() {
    for (code, lines) in entries(&read(PAGE)) {
        let parties = lines.iter().filter_map(|line| line.strip_prefix("- **")?.split_once(".** "));
        let parties: Vec<&str> = parties.map(|(party, _)| party).collect();
        let are_right = parties == ["Client", "Operator"] || parties == ["Client", "Operator", "Backend"];
        assert!(are_right, "{code}: {parties:?}");
    }
}

#[test]
fn the_table_has_each_code_at_its_statuses() {
    let mut rows = BTreeMap::<String, Vec<String>>::new();
    for (code, (statuses, _)) in declared() {
        for status in statuses {
            rows.entry(status).or_default().push(format!("[`{code}`](#{code})"));
        }
    }
    let expected: Vec<String> =
        rows.into_iter().map(|(status, codes)| format!("| {status} | {} |", codes.join(", "))).collect();
    let page = read(PAGE);
    let (_, table) = page.split_once("| status | `code` |\n|---|---|\n").expect("the table");
    assert_eq!(table.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>(), expected);
}

/// Apart from the date and the id of the request, which are never the same twice.
#[tokio::test]
async fn the_sample_is_what_the_program_prints() {
    let backend = Nginx::start().await;
    let proxy = proxy_before(backend.addr()).await;
    let page = blocks(&read(PAGE));
    let [sample] = page.iter().filter(|block| block.kind == "console").collect::<Vec<_>>()[..] else {
        panic!("the page has one sample")
    };
    for (command, shown) in steps(&sample.text) {
        let command = command.replace("curl", "curl --silent").replace("127.0.0.1:8080", &proxy.addr().to_string());
        let output = shell(&command, root()).output().expect("bash starts");
        let printed = String::from_utf8(output.stdout).expect("UTF-8");
        let lines = printed.lines().filter(|line| !line.to_ascii_lowercase().starts_with("date:"));
        assert_eq!(lines.map(without_id).collect::<Vec<_>>(), shown.into_iter().map(without_id).collect::<Vec<_>>());
    }
}

/// A line without the digits of the request's id.
fn without_id(line: &str) -> String {
    const ID: &str = "urn:ifmatch:request:";
    let Some((before, after)) = line.split_once(ID) else { return line.to_owned() };
    let rest = after.trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
    assert_eq!(after.len() - rest.len(), 16, "{line}");
    [before, ID, rest].concat()
}
