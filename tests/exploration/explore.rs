//! Two ways through all worlds. Depth first knows at every moment how it came there, and sees cycles. Breadth first
//! finds the shortest way to a broken promise.

use std::{
    collections::{BTreeSet, HashMap, HashSet, hash_map::Entry},
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
};

use super::{
    rules::Rules,
    world::{Event, Who, World},
};

/// The size of an exploration.
#[derive(Debug, Default)]
pub struct Size {
    pub states: usize,
    /// Events that lead from one state to another.
    pub events: usize,
    /// The largest number of events in a row, on the ways taken.
    pub depth: usize,
    /// The kinds of events that have happened.
    pub kinds: BTreeSet<&'static str>,
}

/// A broken promise, and the events that led there.
#[derive(Debug)]
pub struct Violation {
    pub how: String,
    pub events: Vec<Event>,
}

/// A world on the way, and the moves from it that are still to be tried.
struct Place {
    name: u64,
    reached_by: Event,
    untried: std::vec::IntoIter<(Event, World)>,
}

/// Returns the hash of a world: only the hashes are kept. Among about ten million worlds, the chance that two share
/// their 64 bits is one in a hundred thousand.
fn name(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

/// Follows every event from every world. The promise must hold in each of them, and every client must get an answer in
/// the end: no way may end before that, and none may come back to a world on it.
pub fn explore(start: &World, rules: &Rules) -> Result<Size, Violation> {
    let mut size = Size { states: 1, ..Size::default() };
    let first = name(start);
    // Whether all worlds that follow have been explored too.
    let mut seen = HashMap::from([(first, false)]);
    let untried = start.moves(rules).into_iter();
    let mut way = vec![Place { name: first, reached_by: (Who::All, "begins"), untried }];
    while let Some(place) = way.last_mut() {
        let Some((event, world)) = place.untried.next() else {
            seen.insert(place.name, true);
            way.pop();
            continue;
        };
        size.events += 1;
        size.kinds.insert(event.1);
        let name = name(&world);
        let entry = seen.entry(name);
        let moves = if matches!(entry, Entry::Vacant(_)) { world.moves(rules) } else { Vec::new() };
        let problem = match &entry {
            _ if world.broken.is_some() => world.broken,
            Entry::Vacant(_) if moves.is_empty() => world.check_end(),
            Entry::Occupied(entry) if !entry.get() => Some("it goes round in circles".to_owned()),
            _ => None,
        };
        if let Some(how) = problem {
            let events = way.iter().skip(1).map(|place| place.reached_by).chain([event]).collect();
            return Err(Violation { how, events });
        }
        if let Entry::Vacant(entry) = entry {
            entry.insert(false);
            way.push(Place { name, reached_by: event, untried: moves.into_iter() });
            size.states += 1;
            size.depth = size.depth.max(way.len() - 1);
        }
    }
    Ok(size)
}

/// Returns the shortest way to a broken promise of one kind, and ignores other kinds.
pub fn shortest(start: World, rules: &Rules, kind: &str) -> Option<Violation> {
    let mut seen = HashSet::from([name(&start)]);
    // The world before each world, and the event between them.
    let mut origins = vec![(0, (Who::All, "begins"))];
    let mut nearest = vec![(start, 0)];
    while !nearest.is_empty() {
        let mut farther = Vec::new();
        for (world, origin) in nearest {
            let moves = world.moves(rules);
            let unanswered = if moves.is_empty() { world.check_end() } else { None };
            if let Some(how) = unanswered.filter(|how| how.contains(kind)) {
                return Some(Violation { how, events: events(&origins, origin) });
            }
            for (event, mut next) in moves {
                let broken = next.broken.take().filter(|how| how.contains(kind));
                if broken.is_none() && !seen.insert(name(&next)) {
                    continue;
                }
                origins.push((origin, event));
                let place = origins.len() - 1;
                if let Some(how) = broken {
                    return Some(Violation { how, events: events(&origins, place) });
                }
                farther.push((next, place));
            }
        }
        nearest = farther;
    }
    None
}

fn events(origins: &[(usize, Event)], last: usize) -> Vec<Event> {
    let mut events = Vec::new();
    let mut place = last;
    while place > 0 {
        let (before, event) = origins[place];
        events.push(event);
        place = before;
    }
    events.reverse();
    events
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.how)?;
        for (place, (who, what)) in self.events.iter().enumerate() {
            let space = if matches!(who, Who::All) { "" } else { " " };
            writeln!(formatter, "{:>4}. {who}{space}{what}", place + 1)?;
        }
        Ok(())
    }
}
