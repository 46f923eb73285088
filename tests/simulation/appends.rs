//! Random settings of appends beside writes, with tags that are remembered (DESIGN, section 3, rule 2).

use fastrand::Rng;
use ifmatch::core::{policy::TagSource, tags::validators::Representation};

use crate::{
    generate::{prologue, setting_of},
    operation::{Manner, Operation},
    options::{Options, Source},
    process::Keeping,
    run::{Run, Setting, Step},
};

/// Builds a setting from a seed: one client replaces the document, by the tag that it got last. Another appends to it,
/// and a third reads it between the two and writes later. No other client writes, so the record may know the tag.
pub fn setting(random: &mut Rng) -> Setting {
    use Operation::{Post, Put, Read};
    let adapt = |options: Options| Options {
        source: Source::Content,
        exclusive: true,
        contents: u32::MAX,
        leased: (false, false),
        omits: false,
        ..options.without_touches()
    };
    let keeping = if random.bool() { Keeping::Memory } else { Keeping::Shared };
    let (_, setting) = setting_of(random, keeping, adapt);
    let step = Step::of_document;
    // In a short run it is likely that one of the two is slow.
    let operations = if random.bool() {
        vec![vec![Put], vec![Post; random.usize(1..3)]]
    } else {
        vec![vec![Read, Put, Put, Put], vec![Post; random.usize(1..4)], vec![Read, Read, Put, Read, Put]]
    };
    let operations = operations.into_iter();
    let steps: Vec<Vec<_>> = operations.map(|operations| operations.into_iter().map(step).collect()).collect();
    let prologue = steps.iter().enumerate().map(|(client, steps)| prologue(random, client, steps)).collect();
    Setting { other: None, reload_changes_tags: false, prologue, steps, ..setting }
}

impl Run {
    /// Checks that no record knows the tag of another state than the present one. The tags are those of the content, by
    /// ifmatch, and no other client writes.
    pub async fn compare_records(&mut self, target: &str) {
        let mut guards = self.setting.config.routes.iter().filter_map(|route| route.guard.as_ref());
        let makes_tags = guards.all(|guard| guard.etag == TagSource::Content && !guard.other_writers);
        // Each part of a document is a variant of its own.
        let is_alone = self.setting.steps.iter().flatten().all(|step| step.target == target);
        if !makes_tags || !is_alone || self.setting.other.is_some() || self.setting.has_metadata {
            return;
        }
        let client = self.clients.len() - 1;
        let step = Step { operation: Operation::Read, target: target.to_owned(), manner: Manner::default() };
        let Some(tag) = self.alone(client, step).await.and_then(|told| told.tag) else { return };
        for (key, snapshot) in self.cellar.records().into_iter().filter(|(key, _)| key.as_str().ends_with(target)) {
            let known = snapshot.record.known.as_ref().map(|known| &known.representation);
            if let Some(Representation::Present(validators)) = known
                && let Some(known) = validators.tag.as_ref().filter(|_| snapshot.has_no_pending_writes())
                && known.to_header_value() != tag
            {
                self.breaks(format!("the record of {key:?} knows the tag {known:?}, and the present state has {tag}"));
            }
        }
    }
}
