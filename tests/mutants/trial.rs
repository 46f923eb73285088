//! The trial of each mutant before its judges.

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

/// The number of mutants that are tried at a time.
const AT_A_TIME: usize = 2;

/// The limit of a judge: a multiple of its time on the unbroken code, and a constant.
const LIMIT_TIMES: u32 = 6;
const LIMIT_MORE: Duration = Duration::from_secs(60);

/// The limit of a judge on the unbroken code.
const SOUND_MAX: Duration = Duration::from_secs(900);

/// The judges of a run: their programs, and their limits.
struct Bench {
    programs: Programs,
    limits: BTreeMap<Judge, Duration>,
}

/// Tries each mutant; only the targets in `allowed` judge, if there are any.
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
    /// Builds the programs of the judges, and runs each on the unbroken code: a judge that fails there would find every
    /// mutant.
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

    /// Returns the verdict of the first judge that finds the mutant, and finds it again when only its failed tests run:
    /// on a busy machine, tests fail for other reasons too.
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
