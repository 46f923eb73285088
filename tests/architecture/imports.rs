//! The imports of files: rooms stand on each other in one order, and no files import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use syn::{
    Attribute, Item, ItemMod, ItemUse, Path, UseTree,
    visit::{self, Visit},
};

use super::{assert_none, sources};

/// The modules in their order: each imports only those before it.
const ROOMS: &[&str] = &[
    "box_future",
    "patience",
    "counted",
    "change_count",
    "threads",
    "wire",
    "core",
    "clock",
    "entropy",
    "error_causes",
    "supervisor",
    "names",
    "dialect",
    "tls",
    "config",
    "telemetry",
    "store",
    "body",
    "routing",
    "openapi",
    "upstream",
    "drain",
    "guard",
    "service",
    "generation",
    "downstream",
    "proxy",
    "reload",
    "server",
    "admin",
    "cli",
];

/// The fixtures. They are no room: any test may import them, and they build the parts of all rooms.
const FIXTURES: &str = "testing";

/// A path below `src/` without its ending, one name for each module.
type Module = Vec<String>;

/// Whose imports count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Importers {
    /// The imports of all code, tests included.
    All,
    /// The imports of production code alone.
    Production,
}

/// The imports of one file.
struct Imports {
    /// The module that is being read: that of the file, or one within it.
    module: Module,
    importers: Importers,
    found: BTreeSet<Module>,
}

impl Imports {
    /// Notes a path as it is written here.
    fn note(&mut self, mut names: Vec<String>) {
        let mut from = match names.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self" | "super") => self.module.clone(),
            _ => return,
        };
        while let Some("crate" | "self" | "super") = names.first().map(String::as_str) {
            if names.remove(0) == "super" {
                from.pop();
            }
        }
        from.extend(names);
        self.found.insert(from);
    }

    fn note_tree(&mut self, before: &[String], tree: &UseTree) {
        let and = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.note_tree(&and(&path.ident), &path.tree),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.note_tree(before, tree)),
            UseTree::Name(name) => self.note(and(&name.ident)),
            UseTree::Rename(name) => self.note(and(&name.ident)),
            UseTree::Glob(_) => self.note(before.to_vec()),
        }
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item(&mut self, item: &'ast Item) {
        let (Item::Mod(ItemMod { attrs, .. }) | Item::Use(ItemUse { attrs, .. }) | Item::Fn(syn::ItemFn { attrs, .. })) =
            item
        else {
            return visit::visit_item(self, item);
        };
        if self.importers == Importers::All || !attrs.iter().any(is_for_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.note_tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast Path) {
        self.note(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<Path>().is_ok_and(|path| path.is_ident("test"))
}

fn module_of(file: &str) -> Module {
    let path = file.trim_start_matches("src/").trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if path == "lib" || path == "main" { Vec::new() } else { path.split('/').map(str::to_owned).collect() }
}

/// Each file, and the files that it imports. What a module exports again counts as its own.
fn imports(importers: Importers) -> BTreeMap<Module, BTreeSet<Module>> {
    let files: BTreeMap<Module, String> = sources(&["src"])
        .into_iter()
        .filter(|(file, _)| importers == Importers::All || !file.contains("test"))
        .filter(|(file, _)| file != "src/main.rs" && file != "src/lib.rs")
        .map(|(file, text)| (module_of(&file), text))
        .collect();
    let file_of = |mut path: Module| {
        while !path.is_empty() && !files.contains_key(&path) {
            path.pop();
        }
        path
    };
    let of_one = |(module, text): (&Module, &String)| {
        let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{module:?}: {error}"));
        let mut imports = Imports { module: module.clone(), importers, found: BTreeSet::new() };
        imports.visit_file(&parsed);
        let found = imports.found.into_iter().map(file_of).filter(|file| !file.is_empty() && file != module);
        (module.clone(), found.collect())
    };
    files.iter().map(of_one).collect()
}

fn is_parent_and_child(one: &Module, other: &Module) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn shown((from, to): (&Module, &Module)) -> String {
    format!("{} imports {}", from.join("/"), to.join("/"))
}

#[test]
fn each_room_imports_only_the_rooms_below_it() {
    let height = |module: &Module| {
        let room = &module[0];
        ROOMS.iter().position(|other| other == room).unwrap_or_else(|| panic!("{room} has no place in the order"))
    };
    let imports = imports(Importers::All);
    assert!(imports.len() > 100, "the sources were read");
    let edges = imports.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to)));
    let of_rooms = edges.filter(|(from, to)| from[0] != FIXTURES && to[0] != FIXTURES);
    let upward = of_rooms.filter(|(from, to)| height(to) > height(from));
    assert_none(&upward.map(shown).collect::<Vec<_>>());
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut edges: BTreeSet<(Module, Module)> = imports(Importers::Production)
        .into_iter()
        .flat_map(|(from, all)| all.into_iter().map(move |to| (from.clone(), to)))
        .filter(|(from, to)| !is_parent_and_child(from, to))
        .collect();
    // A module that no other imports, or that imports no other, is on no circle.
    loop {
        let from: BTreeSet<Module> = edges.iter().map(|(from, _)| from.clone()).collect();
        let to: BTreeSet<Module> = edges.iter().map(|(_, to)| to.clone()).collect();
        let before = edges.len();
        edges.retain(|edge| to.contains(&edge.0) && from.contains(&edge.1));
        if edges.len() == before {
            break;
        }
    }
    assert_none(&edges.iter().map(|(from, to)| shown((from, to))).collect::<Vec<_>>());
}

/// The types that a file of production code defines.
struct Types(Vec<String>);

impl<'ast> Visit<'ast> for Types {
    fn visit_item(&mut self, item: &'ast Item) {
        let name = match item {
            Item::Struct(item) => &item.ident,
            Item::Enum(item) => &item.ident,
            Item::Trait(item) => &item.ident,
            Item::Type(item) => &item.ident,
            Item::Mod(item) if item.attrs.iter().any(is_for_tests) => return,
            _ => return visit::visit_item(self, item),
        };
        self.0.push(name.to_string());
        visit::visit_item(self, item);
    }
}

/// The keys of the file are spelled in `config/raw.rs` as tables of the same name.
#[test]
fn no_two_types_have_one_name() {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in sources(&["src"]).into_iter().filter(|(file, _)| !file.contains("test")) {
        let mut types = Types(Vec::new());
        types.visit_file(&syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}")));
        for name in types.0.into_iter().filter(|_| file != "src/config/raw.rs") {
            files.entry(name).or_default().push(file.clone());
        }
    }
    let twice = files.into_iter().filter(|(_, files)| files.len() > 1);
    assert_none(&twice.map(|(name, files)| format!("{name}: {}", files.join(", "))).collect::<Vec<_>>());
}

/// The largest struct of the guard, in fields: one with more has more than one owner.
const FIELDS_MAX: usize = 8;

/// The structs of a file of production code that have too many fields.
struct LargeStructs(Vec<String>);

impl<'ast> Visit<'ast> for LargeStructs {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        if item.fields.len() > FIELDS_MAX {
            self.0.push(format!("{} has {} fields", item.ident, item.fields.len()));
        }
    }
}

#[test]
fn no_struct_of_the_guard_owns_too_much() {
    let mut problems = Vec::new();
    for (file, text) in sources(&["src/guard"]) {
        let mut large = LargeStructs(Vec::new());
        large.visit_file(&syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}")));
        problems.extend(large.0.into_iter().map(|problem| format!("{file}: {problem}, not {FIELDS_MAX}")));
    }
    assert_none(&problems);
}
