//! The line against a collection whose members are created, taken, given back and deleted at any moment.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The number of names on a page here.
const PAGE: usize = 2;

/// A collection, and since when each member is free.
#[derive(Default)]
struct World {
    moment: u64,
    free_since: BTreeMap<String, Option<u64>>,
    line: Line,
    clients: Vec<(Ticket, u64)>,
    served: Vec<(String, u64)>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Create(u8),
    Delete(u8),
    Release(u8),
    Enter,
    Leave(u8),
    /// A client does what the line needs. What it looks at may have changed since the page was read.
    Act {
        client: u8,
        is_changed: bool,
    },
    /// The last pass is old.
    Anew,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0_u8..9).prop_map(Event::Create),
        (0_u8..9).prop_map(Event::Delete),
        (0_u8..9).prop_map(Event::Release),
        Just(Event::Enter),
        any::<u8>().prop_map(Event::Leave),
        (any::<u8>(), any::<bool>()).prop_map(|(client, is_changed)| Event::Act { client, is_changed }),
        (any::<u8>(), any::<bool>()).prop_map(|(client, is_changed)| Event::Act { client, is_changed }),
        Just(Event::Anew),
    ]
}

impl World {
    fn page(&self, start: Option<&PageStart>) -> IndexPage {
        let mut page = IndexPage::from(start);
        for name in self.free_since.keys() {
            page.add(name.clone());
        }
        while page.names.len() > PAGE {
            page.names.pop_last();
            page.next = page.names.last().cloned().map(PageStart::After);
        }
        page
    }

    fn happen(&mut self, event: Event) {
        self.moment += 1;
        match event {
            Event::Create(name) => {
                self.free_since.entry(name.to_string()).or_insert(Some(self.moment));
            }
            Event::Delete(name) => {
                self.free_since.remove(&name.to_string());
            }
            Event::Release(name) => {
                let moment = self.moment;
                self.free_since.entry(name.to_string()).and_modify(|free| *free = free.or(Some(moment)));
            }
            Event::Enter => self.clients.push((self.line.enter(), self.moment)),
            Event::Leave(client) => {
                if let Some((ticket, _)) = self.pick(client) {
                    self.line.leave(ticket);
                }
            }
            Event::Anew if self.line.may_begin_anew() => self.line.begin_pass(),
            Event::Anew => {}
            Event::Act { client, is_changed } => self.act(client, is_changed),
        }
    }

    fn pick(&mut self, client: u8) -> Option<(Ticket, u64)> {
        let count = self.clients.len();
        (count > 0).then(|| self.clients.remove(usize::from(client) % count))
    }

    fn act(&mut self, client: u8, is_changed: bool) {
        let Some((ticket, came)) = self.pick(client) else { return };
        match self.line.need(ticket) {
            Need::Look(dealt) => match self.free_since.get_mut(&dealt.file) {
                Some(free) if free.is_some() => {
                    if is_changed && !dealt.is_last_resort && self.line.set_aside(ticket) {
                        return self.clients.push((ticket, came));
                    }
                    *free = None;
                    self.served.push((dealt.file, came));
                    return self.line.serve(ticket);
                }
                _ => self.line.skip(ticket),
            },
            Need::Page => {
                let page = self.page(self.line.page_start());
                self.line.add_page(page);
            }
            Need::Pass => self.line.begin_pass(),
            Need::Nothing => {
                let others: Vec<&String> = self.line.clients.values().flatten().map(|dealt| &dealt.file).collect();
                let is_passed_over = |(name, free): (&String, &Option<u64>)| {
                    free.is_some_and(|since| since < came) && !others.contains(&name)
                };
                assert!(!self.free_since.iter().any(is_passed_over), "a free member is there for {ticket:?}");
                return self.line.leave(ticket);
            }
        }
        self.clients.push((ticket, came));
    }
}

proptest! {
    #[test]
    fn no_member_goes_to_two_and_none_is_passed_over(events in proptest::collection::vec(event(), 0..120)) {
        let mut world = World::default();
        for event in events {
            world.happen(event);
            let mut looked_at: Vec<&String> = world.line.clients.values().flatten().map(|dealt| &dealt.file).collect();
            looked_at.extend(&world.line.candidates);
            looked_at.extend(&world.line.set_aside);
            let all = looked_at.len();
            looked_at.sort();
            looked_at.dedup();
            prop_assert_eq!(looked_at.len(), all, "a member is in two places");
        }
        // Left alone, everyone gets a member or learns that there is none.
        for turn in 0..2_000_u32 {
            if world.clients.is_empty() {
                break;
            }
            world.happen(Event::Act { client: u8::try_from(turn % 251).unwrap_or_default(), is_changed: turn % 3 == 0 });
        }
        prop_assert!(world.clients.is_empty(), "nobody waits for ever");
    }
}

fn names(names: &[&str]) -> IndexPage {
    let mut page = IndexPage::from(None);
    for name in names {
        page.add((*name).to_owned());
    }
    page
}

fn file(need: Need) -> String {
    match need {
        Need::Look(dealt) => dealt.file,
        other => panic!("nothing to look at: {other:?}"),
    }
}

/// Rule 16: those that came first are served first, with the first names.
#[test]
fn members_are_dealt_in_the_order_of_names_and_of_arrival() {
    let mut line = Line::default();
    let clients = [line.enter(), line.enter(), line.enter()];
    line.begin_pass();
    line.add_page(names(&["b", "a"]));
    assert_eq!((file(line.need(clients[0])), file(line.need(clients[1]))), ("a".to_owned(), "b".to_owned()));
    assert_eq!(line.need(clients[2]), Need::Nothing);
    line.leave(clients[0]);
    assert_eq!(file(line.need(clients[2])), "a", "what a client gives up goes to the next one");
}

#[test]
fn what_an_earlier_pass_has_not_shown_proves_nothing() {
    let mut line = Line::default();
    let first = line.enter();
    assert_eq!(line.need(first), Need::Pass);
    line.begin_pass();
    let second = line.enter();
    line.add_page(names(&[]));
    assert_eq!((line.need(first), line.need(second)), (Need::Nothing, Need::Pass));
}

#[test]
fn a_member_that_was_set_aside_is_tried_if_nothing_else_is_there() {
    let mut line = Line::default();
    let client = line.enter();
    line.begin_pass();
    line.add_page(names(&["a", "b"]));
    assert!(line.set_aside(client));
    assert_eq!(file(line.need(client)), "b");
    line.skip(client);
    assert_eq!(line.need(client), Need::Look(Dealt { file: "a".to_owned(), is_last_resort: true }));
    line.skip(client);
    assert_eq!(line.need(client), Need::Nothing);
}
