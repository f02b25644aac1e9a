//! What is dangerous though valid, and what a kernel, boot loader or tool refuses: rows of data.
//!
//! A [`Row`] is one fact: a condition over [`Facts`] of the image, and the [`Effect`]s it has on ranges of versions.
//! Text, JSON, `explain`, docs/hazards.md and the tests walk [`rows`]; adding a hazard is adding a row. The verdict
//! for a kernel ([`Evaluation::verdict`]) follows from the rows alone: what is refused in which mode of mounting, and
//! which dangers are left in the modes that work.

mod boot;
mod deep;
pub mod enable;
mod facts;
mod features;
mod geometry;
mod headers;
pub mod iget;
pub mod kernel;
mod log;
mod minlog;
mod nullderef;
mod realtime;
mod sanity;
pub mod stream;
mod unseen;

pub use deep::{Deep, Met, arithmetic};
pub use facts::{Asked, Facts, Fault, Headers, Journal, Known, LogState, Same};
pub use kernel::{Config, Kernel, Stable, Version};
pub use minlog::minimum_log_blocks;
pub use nullderef::{Lookup, lookup};

use crate::error::Place;
use std::fmt;

/// How bad an effect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing is refused or lost.
    Note,
    /// Mounting read-write is refused, read-only works.
    Ro,
    /// Mounting is refused.
    Refuse,
    /// Oops, shutdown, corruption, lost or wrong data.
    Danger,
}

impl Severity {
    /// Its name in JSON and text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Ro => "ro",
            Self::Refuse => "refuse",
            Self::Danger => "danger",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How sure a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// Seen in the sources of releases on both sides of each bound, or run.
    Confirmed,
    /// Follows from what was seen.
    Inferred,
    /// Reported, not seen in sources.
    Reported,
}

impl Confidence {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed in sources or by running it",
            Self::Inferred => "inferred from sources",
            Self::Reported => "reported, not confirmed in sources",
        }
    }
}

/// Modes of mounting, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes(u8);

impl Modes {
    /// None.
    pub const NONE: Self = Self(0);
    /// `ro,norecovery`.
    pub const NOREC: Self = Self(1);
    /// `ro`.
    pub const RO: Self = Self(2);
    /// `rw`.
    pub const RW: Self = Self(4);
    /// Those that recover the log first: `ro` and `rw`.
    pub const RECOVERING: Self = Self(6);
    /// All three.
    pub const ALL: Self = Self(7);

    /// Those of either.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// Those of this that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
    /// Have they one in common?
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// What the condition of a row says about an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It does not hold.
    No,
    /// It holds.
    Yes(Evidence),
    /// Not decided, and why.
    Unknown(String),
}

/// Why a condition holds: the numbers, and where they stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The numbers, in words.
    pub text: String,
    /// The field or structure that decides.
    pub place: Option<Place>,
}

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Mounting and running, by kernel release.
    Kernel,
    /// GRUB, by its releases (2.06 is `v(2, 6)`).
    Grub,
    /// The tools of xfsprogs, by their releases.
    Tools,
}

/// What follows in a range of versions.
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    /// First release concerned.
    pub from: Version,
    /// First release not concerned any more.
    pub until: Version,
    /// How bad.
    pub severity: Severity,
    /// Modes that are refused, or in which the danger lies.
    pub modes: Modes,
    /// What happens, in a sentence.
    pub outcome: &'static str,
    /// Stable releases of series before `until` that are no longer concerned.
    pub fixed: &'static [Stable],
    /// Stable releases of series before `from` that are already concerned.
    pub also: &'static [Stable],
    /// The mount itself crashes or hangs in these modes: they do not work, and the machine may not, either.
    pub crash: bool,
    /// A further condition on the image and the kernel.
    pub only: Option<fn(&Facts, &Kernel) -> bool>,
}

const fn effect(from: Version, until: Version, severity: Severity, modes: Modes, outcome: &'static str) -> Effect {
    Effect { from, until, severity, modes, outcome, fixed: &[], also: &[], crash: false, only: None }
}
/// Refused in every mode from `from` to before `until`.
const fn refuse(from: Version, until: Version, outcome: &'static str) -> Effect {
    effect(from, until, Severity::Refuse, Modes::ALL, outcome)
}
/// Refused read-write only.
const fn read_only(from: Version, until: Version, outcome: &'static str) -> Effect {
    effect(from, until, Severity::Ro, Modes::RW, outcome)
}
/// Dangerous once mounted read-write.
const fn danger(from: Version, until: Version, outcome: &'static str) -> Effect {
    effect(from, until, Severity::Danger, Modes::RW, outcome)
}
/// The mount itself crashes or hangs in these modes.
const fn crash(from: Version, until: Version, modes: Modes, outcome: &'static str) -> Effect {
    Effect { crash: true, ..effect(from, until, Severity::Danger, modes, outcome) }
}
/// Worth knowing.
const fn note(from: Version, until: Version, outcome: &'static str) -> Effect {
    effect(from, until, Severity::Note, Modes::ALL, outcome)
}

impl Effect {
    const fn fixed(self, fixed: &'static [Stable]) -> Self {
        Self { fixed, ..self }
    }
    const fn also(self, also: &'static [Stable]) -> Self {
        Self { also, ..self }
    }
    const fn modes(self, modes: Modes) -> Self {
        Self { modes, ..self }
    }
    const fn only(self, only: fn(&Facts, &Kernel) -> bool) -> Self {
        Self { only: Some(only), ..self }
    }

    /// Does it concern that version?
    pub fn covers(&self, version: Version) -> bool {
        let reached = |list: &[Stable]| {
            list.iter().any(|s| s.version.series == version.series && version.stable >= s.version.stable)
        };
        let within = self.from <= version && version < self.until;
        (within && !reached(self.fixed)) || (version < self.from && reached(self.also))
    }

    /// What stable releases of the kernel's own series change, in words.
    pub fn remark(&self, version: Version) -> Option<String> {
        let later = |list: &[Stable]| {
            list.iter().find(|s| s.version.series == version.series && version.stable < s.version.stable).copied()
        };
        let within = self.from <= version && version < self.until;
        let (stable, what) = if within { (later(self.fixed)?, "no longer") } else { (later(self.also)?, "also") };
        Some(if stable.exact {
            format!("{what} from {} on", stable.version)
        } else {
            format!(
                "{what} in later stable releases of {}, number unknown ({} at the latest)",
                version.series_name(),
                stable.version
            )
        })
    }

    /// The range in words: `3.2 to before 3.6`.
    pub fn range(&self) -> String {
        let list = |list: &[Stable]| {
            let names: Vec<String> = list
                .iter()
                .map(|s| if s.exact { s.version.to_string() } else { format!("{} or earlier", s.version) })
                .collect();
            names.join(", ")
        };
        let mut text = match (self.from == kernel::ALWAYS, self.until == kernel::NEVER) {
            (true, true) => "all".to_owned(),
            (true, false) => format!("before {}", self.until),
            (false, true) => format!("{} and later", self.from),
            (false, false) => format!("{} to before {}", self.from, self.until),
        };
        if !self.fixed.is_empty() {
            text.push_str(&format!(" (not from {} on)", list(self.fixed)));
        }
        if !self.also.is_empty() {
            text.push_str(&format!(" (also from {} on)", list(self.also)));
        }
        text
    }
}

/// A fact: a condition of the image and what follows from it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Stable id that names the danger. Never reused.
    pub id: &'static str,
    /// Its name in the literature this registry was made from: `P1, RT-12`.
    pub refs: &'static str,
    /// What it is about.
    pub about: About,
    /// The condition in a few words.
    pub title: &'static str,
    /// The condition.
    pub test: fn(&Facts) -> Answer,
    /// What follows, by version. Where ranges overlap the first one counts.
    pub effects: &'static [Effect],
    /// The mechanism in plain words.
    pub explanation: &'static str,
    /// What to do about it.
    pub advice: &'static str,
    /// Where it was seen: kernel file and function, trees, reports.
    pub source: &'static str,
    /// How sure it is.
    pub confidence: Confidence,
    /// How to make an image that fires it.
    pub fire: &'static str,
}

impl Row {
    /// The worst it can be.
    pub fn severity(&self) -> Severity {
        self.effects.iter().map(|e| e.severity).max().unwrap_or(Severity::Note)
    }
}

/// Every row, in the order in which they are shown.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    [
        nullderef::ROWS,
        features::WORDS,
        features::BITS,
        sanity::ROWS,
        geometry::ROWS,
        headers::ROWS,
        log::ROWS,
        realtime::ROWS,
        unseen::ROWS,
        boot::ROWS,
    ]
    .into_iter()
    .flatten()
}

/// The row with that id, or with that name among its references.
pub fn row(id: &str) -> Option<&'static Row> {
    rows()
        .find(|row| row.id == id)
        .or_else(|| rows().find(|row| row.refs.split(", ").any(|name| name.eq_ignore_ascii_case(id))))
}

/// The row of that id, or else all that it is a reference of (`P6`, `RT-02`, `C25`).
pub fn rows_of(id: &str) -> Vec<&'static Row> {
    let of = |row: &&Row| row.refs.split(", ").any(|name| name.eq_ignore_ascii_case(id));
    match rows().find(|row| row.id == id) {
        Some(row) => vec![row],
        None => rows().filter(of).collect(),
    }
}

/// The answers of all rows about one image.
#[derive(Debug)]
pub struct Evaluation<'a> {
    /// The image.
    pub facts: &'a Facts,
    /// Rows with their answers.
    pub answers: Vec<(&'static Row, Answer)>,
}

/// A row that applies to a kernel, a loader or a tool.
#[derive(Clone, Debug)]
pub struct Applied<'a> {
    /// The row.
    pub row: &'static Row,
    /// What follows.
    pub effect: &'static Effect,
    /// Why.
    pub evidence: &'a Evidence,
    /// What stable releases change.
    pub remark: Option<String>,
}

/// A row that could not be decided and matters there.
#[derive(Clone, Debug)]
pub struct Undecided<'a> {
    /// The row.
    pub row: &'static Row,
    /// What would follow.
    pub effect: &'static Effect,
    /// Why it is not decided.
    pub why: &'a str,
}

/// How a kernel mounts an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mount {
    /// Read-write, no hazard known.
    Rw,
    /// Read-write, and something dangerous applies, perhaps to the mount itself ([`Verdict::modes`]).
    Hazard,
    /// Only read-only.
    Ro,
    /// Not at all (perhaps with norecovery, see [`Verdict::modes`]).
    Refused,
}

impl Mount {
    /// Its name in JSON and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rw => "rw",
            Self::Hazard => "hazard",
            Self::Ro => "ro",
            Self::Refused => "refused",
        }
    }
}

/// What a kernel does with an image.
#[derive(Clone, Debug)]
pub struct Verdict<'a> {
    /// How it mounts.
    pub mount: Mount,
    /// The modes that are not refused, and in which the mount does not crash.
    pub modes: Modes,
    /// Refusals, restrictions and dangers that apply, worst mode first.
    pub reasons: Vec<Applied<'a>>,
    /// Notes.
    pub notes: Vec<Applied<'a>>,
    /// What was not looked at and could change the verdict.
    pub undecided: Vec<Undecided<'a>>,
}

impl Verdict<'_> {
    /// Refusals that are not decided and would change how it mounts. Which device an image will lie on is no question of the
    /// image.
    pub fn open(&self) -> impl Iterator<Item = &Undecided<'_>> {
        let usual = if self.modes.meets(Modes::RW) { Modes::RW } else { Modes::RO };
        let (row, modes) = (geometry::SECTOR, self.modes);
        self.undecided.iter().filter(move |u| {
            let blocks = matches!(u.effect.severity, Severity::Refuse | Severity::Ro);
            blocks && u.row.id != row && modes.meets(usual) && u.effect.modes.meets(usual)
        })
    }

    /// Is a refusal undecided that would change how it mounts? Then `mount` is only what it would be without.
    pub fn is_open(&self) -> bool {
        self.open().next().is_some()
    }
}

impl<'a> Evaluation<'a> {
    /// Asks every row about an image.
    pub fn new(facts: &'a Facts) -> Self {
        Self { facts, answers: rows().map(|row| (row, (row.test)(facts))).collect() }
    }

    /// The effect of a row on a kernel, where there is one.
    pub fn effect(&self, row: &'static Row, kernel: &Kernel) -> Option<&'static Effect> {
        row.effects.iter().find(|e| e.covers(kernel.version) && e.only.is_none_or(|only| only(self.facts, kernel)))
    }

    /// What a kernel does with the image.
    pub fn verdict(&self, kernel: &Kernel) -> Verdict<'_> {
        let (mut all, mut undecided) = (Vec::new(), Vec::new());
        for (row, answer) in self.answers.iter().filter(|(row, _)| row.about == About::Kernel) {
            let Some(effect) = self.effect(row, kernel) else { continue };
            match answer {
                Answer::No => {}
                Answer::Yes(evidence) => {
                    all.push(Applied { row, effect, evidence, remark: effect.remark(kernel.version) });
                }
                Answer::Unknown(why) => undecided.push(Undecided { row, effect, why }),
            }
        }
        let refused = all
            .iter()
            .filter(|a| matches!(a.effect.severity, Severity::Refuse | Severity::Ro))
            .fold(Modes::NONE, |modes, a| modes.or(a.effect.modes));
        // Where nothing refuses the mount, it begins, and may crash.
        let begun = Modes::ALL.without(refused);
        let crashed = all.iter().filter(|a| a.effect.crash).fold(Modes::NONE, |modes, a| modes.or(a.effect.modes));
        let modes = begun.without(crashed);
        let (mut reasons, mut notes) = (Vec::new(), Vec::new());
        for applied in all {
            match applied.effect.severity {
                Severity::Refuse | Severity::Ro => reasons.push(applied),
                Severity::Danger if applied.effect.modes.meets(begun) => reasons.push(applied),
                Severity::Danger => {}
                Severity::Note if applied.effect.modes.meets(modes) => notes.push(applied),
                Severity::Note => {}
            }
        }
        // What blocks comes before what is merely dangerous; the order of rows stays otherwise.
        reasons.sort_by_key(|a| match a.effect.severity {
            Severity::Refuse => 0,
            Severity::Ro => 1,
            Severity::Danger | Severity::Note => 2,
        });
        let dangerous =
            reasons.iter().any(|a| a.effect.severity == Severity::Danger && a.effect.modes.meets(Modes::RW));
        let mount = if begun.meets(Modes::RW) {
            if dangerous { Mount::Hazard } else { Mount::Rw }
        } else if modes.meets(Modes::RO) {
            Mount::Ro
        } else {
            Mount::Refused
        };
        undecided.retain(|u| u.effect.severity != Severity::Note && u.effect.modes.meets(modes));
        Verdict { mount, modes, reasons, notes, undecided }
    }

    /// The rows of a boot loader or tool that apply to one of its releases.
    pub fn reader(&self, about: About, version: Version) -> Vec<Applied<'_>> {
        let rows = self.answers.iter().filter(|(row, _)| row.about == about);
        rows.filter_map(|(row, answer)| {
            let Answer::Yes(evidence) = answer else { return None };
            let effect = row.effects.iter().find(|e| e.covers(version))?;
            Some(Applied { row, effect, evidence, remark: effect.remark(version) })
        })
        .collect()
    }

    /// The answer of a row.
    pub fn answer(&self, id: &str) -> Option<&Answer> {
        self.answers.iter().find(|(row, _)| row.id == id).map(|(_, answer)| answer)
    }
}

/// Releases that `preflight` answers for unless others are asked for.
pub const KERNELS: [Version; 19] = {
    use kernel::{v, v26};
    [
        v26(32),
        v(3, 2),
        v(3, 10),
        v(3, 16),
        v(3, 18),
        v(4, 4),
        v(4, 9),
        v(4, 14),
        v(4, 18),
        v(4, 19),
        v(5, 4),
        v(5, 10),
        v(5, 14),
        v(5, 15),
        v(6, 1),
        v(6, 6),
        v(6, 12),
        v(6, 18),
        v(7, 2),
    ]
};

/// Releases of GRUB that it answers for; 2.06 is `v(2, 6)`.
pub const GRUBS: [(Version, &str); 6] = {
    use kernel::v;
    [(v(2, 0), "2.00"), (v(2, 2), "2.02"), (v(2, 4), "2.04"), (v(2, 6), "2.06"), (v(2, 12), "2.12"), (v(2, 14), "2.14")]
};

#[cfg(test)]
mod tests;
