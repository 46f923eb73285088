//! Each mutant before its judges.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::{Path, PathBuf},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use super::{
    judge::{self, Judge, Word},
    list::Mutant,
    program::{self, Programs},
    report::{Row, Verdict},
};

/// Mutants that are tried at a time.
const AT_A_TIME: usize = 2;

/// The limit of a judge: so many times what it takes where nothing is broken, and this much more.
const LIMIT_TIMES: u32 = 6;
const LIMIT_MORE: Duration = Duration::from_secs(60);

/// What a judge may take where nothing is broken.
const SOUND_MAX: Duration = Duration::from_secs(900);

/// The judges of a run: their programs, and how long each may take.
struct Bench {
    programs: Programs,
    limits: BTreeMap<Judge, Duration>,
}

/// Tries each mutant. Only these targets judge, if some are named.
pub fn all(mutants: &[Mutant], allowed: Option<&[String]>) -> Vec<Row> {
    let may_judge = |judge: &Judge| allowed.is_none_or(|targets| targets.contains(&judge.target));
    let judges_of = |mutant: &Mutant| -> Vec<Judge> {
        let own = mutant.judge.iter().map(|text| Judge::parse(text));
        own.chain(judge::general()).filter(may_judge).collect()
    };
    let judges: BTreeSet<Judge> = mutants.iter().flat_map(judges_of).collect();
    let bench = Bench::of(&judges);
    let waiting = Mutex::new(mutants.iter().collect::<VecDeque<_>>());
    let rows = Mutex::new(Vec::new());
    let work = || {
        while let Some(mutant) = { waiting.lock().unwrap().pop_front() } {
            let row = Row { mutant: mutant.clone(), verdict: bench.verdict(mutant, &judges_of(mutant)) };
            println!("{}", row.line());
            rows.lock().unwrap().push(row);
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(work);
        }
    });
    let mut rows = rows.into_inner().unwrap();
    let order = |row: &Row| mutants.iter().position(|mutant| mutant.name == row.mutant.name);
    rows.sort_by_key(order);
    rows
}

impl Bench {
    /// Builds the programs of the judges, and runs each where nothing is broken: one that fails then finds everything.
    fn of(judges: &BTreeSet<Judge>) -> Self {
        let targets = judges.iter().map(|judge| judge.target.clone()).collect();
        let programs = program::build(super::root(), &targets);
        let mut limits = BTreeMap::new();
        for judge in judges {
            let (begun, log) = (Instant::now(), log("nothing", judge));
            let word = judge.ask(&programs, None, SOUND_MAX, &log);
            assert_eq!(word, Word::Passes, "nothing is broken, and {} does not pass: {}", judge.name(), log.display());
            println!("nothing is broken: {} passes in {:.1} s", judge.name(), begun.elapsed().as_secs_f64());
            limits.insert(judge.clone(), begun.elapsed() * LIMIT_TIMES + LIMIT_MORE);
        }
        Self { programs, limits }
    }

    /// The word of the first judge that finds the mutant, and again when its failed tests are run alone: a machine that is
    /// busy makes tests fail too.
    fn verdict(&self, mutant: &Mutant, judges: &[Judge]) -> Verdict {
        let mut verdict = Verdict::Survives;
        for judge in judges {
            let ask =
                |judge: &Judge, limit| judge.ask(&self.programs, Some(&mutant.name), limit, &log(&mutant.name, judge));
            let tests = match ask(judge, self.limits[judge]) {
                Word::Passes => continue,
                Word::Fails(tests) => tests,
                Word::Hangs => return Verdict::Hangs { judge: judge.name() },
            };
            let (judge, again) = (judge.name(), ask(&judge.only(&tests), self.limits[judge]));
            if again != Word::Passes {
                return Verdict::Found { judge, tests };
            }
            verdict = Verdict::Luck { judge, tests };
        }
        verdict
    }
}

fn log(mutant: &str, judge: &Judge) -> PathBuf {
    let name: String = judge.name().chars().map(|letter| if letter.is_alphanumeric() { letter } else { '-' }).collect();
    let name: String = name.chars().take(80).collect();
    super::root().join(Path::new("target/mutants/log").join(mutant).join(name).with_extension("log"))
}
