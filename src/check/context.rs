//! What every part of a check shares: the file system, where findings go, who owns which block, what is known of the
//! log. One [`Ctx`] per run, shared between threads by reference.

use super::dquot;
use super::finding::{Class, Finding, Object, RuleInfo};
use super::gather::{Gathered, Under};
use super::group::Group;
use super::known::Known;
use super::links::Links;
use super::names::Names;
use super::owners::OwnerMap;
use super::raised;
use super::recovery::LogFacts;
use super::rt_shared::RtShared;
use crate::error::{Error, Place};
use crate::format::Context;
use crate::geometry::Geometry;
use crate::units::{AgNumber, ByteOffset, FsBlock, Ino};
use crate::volume::{Survey, Volume};
use crate::walk::Walk;
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

raised! { RAISED, structure "check";
    /// The device did not give these bytes. What lies there is unknown: it is neither called sound nor damaged, and what
    /// would be compared with it is left out. Copy the device with ddrescue before anything else.
    UNREADABLE: "check-unreadable" incomplete "bytes", "could not be read",
        source "scrub/common.c:xchk_process_error", since "scrub";
    /// The walks took more steps than any sound file system needs: pointers lead in circles. What was not reached is
    /// not judged.
    EXHAUSTED: "check-gave-up" incomplete "steps", "gave up: what is left leads in circles",
        source "none: a bound of this program", since "none";
    /// Something could not be looked at, for the reason given.
    NOT_LOOKED_AT: "check-not-looked-at" incomplete "object", "could not be looked at",
        source "none: says what the verdict does not cover", since "none";
    /// Two structures should say the same, and one of them is damaged or could not be read, as said above. Nothing follows
    /// from comparing them.
    NOT_COMPARED: "check-not-compared" xfailed "object", "not compared, since one side is damaged or not wholly read",
        source "scrub/common.c:xchk_should_check_xref", since "scrub";
    /// Some objects are damaged so that what they own is not known. Blocks without an owner may be theirs, so lost
    /// blocks were not looked for. Mend what is named above, then check again.
    OWNERS_UNKNOWN: "check-owners-unknown" xfailed "owners", "lost blocks were not looked for, since some owners are unreadable",
        source "scrub/common.c:xchk_should_check_xref", since "scrub";
}

/// What is asked of a check.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads to use.
    pub threads: usize,
    /// Only these AGs; all where empty. What needs the whole file system is left out.
    pub ags: Vec<u32>,
    /// Only findings of these rules: an id, the beginning of ids (`space`), or a structure (`agf`). All where empty.
    pub only: Vec<String>,
    /// Findings that are kept; more are counted.
    pub max_findings: usize,
}

impl Default for Options {
    fn default() -> Self {
        let threads = crate::walk::parallel::default_threads();
        Self { threads, ags: Vec::new(), only: Vec::new(), max_findings: 1000 }
    }
}

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What it is doing.
    pub step: &'static str,
    /// How much of that is done …
    pub done: u64,
    /// … of how much; 0 where that is not known.
    pub total: u64,
}

/// Ways to look in on a check, and to stop it.
#[derive(Clone, Copy)]
pub struct Hooks<'a> {
    /// Called now and then, from any thread.
    pub progress: &'a (dyn Fn(Progress) + Sync),
    /// Set to end the run early: nothing more is read then, and what was found so far is reported.
    pub cancel: &'a Arc<AtomicBool>,
}

impl fmt::Debug for Hooks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooks")
    }
}

/// Where a finding is and what it is about.
#[derive(Clone, Debug)]
pub struct Spot {
    /// The place.
    pub place: Place,
    /// The object.
    pub object: Object,
}

impl Spot {
    /// A part of it: `recs[3]`.
    #[must_use]
    pub fn part(&self, part: impl fmt::Display) -> Self {
        let mut place = self.place.clone();
        place.structure = format!("{} › {part}", place.structure);
        Self { place, object: self.object }
    }
}

/// Where tables keep what they know of an inode: a table for each AG, with 64 places for each chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InodeSlot {
    /// Place of the AG in [`Ctx::groups`].
    pub group: usize,
    /// Place in the table of the AG.
    pub index: usize,
    /// Does the inode btree give it space?
    pub has_space: bool,
    /// Does the inode btree say that it is in use?
    pub in_use: bool,
}

/// Findings of one rule about one object that are kept; the rest is folded under the last of them.
const KEPT_PER_OBJECT: usize = 5;

/// Findings of one rule that most likely follow from other damage, and are kept.
const KEPT_OF_FOLLOWERS: usize = 3;

/// Inodes with too few blocks that are remembered.
const SHORT: usize = 1000;

/// Structures in unreadable places that are remembered.
const UNREAD: usize = 10_000;

/// What is damaged, and what was not wholly seen.
#[derive(Clone, Debug, Default)]
struct Damage {
    inodes: HashSet<Ino>,
    ags: HashSet<AgNumber>,
    /// Inodes of which something could not be looked at.
    unseen: HashSet<Ino>,
}

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// The findings.
    pub gathered: Gathered,
    /// Observations that recovery of the log may explain.
    pub explained: u64,
    /// What a repair would have to do about all findings, those that are not kept included.
    pub repair: super::repair::Repair,
    /// Structures that could not be read: place, what the system said, object.
    pub unread: Vec<(Place, String, Object)>,
    damage: Damage,
}

/// The greatest log sequence number ahead of the log, and how many there are.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    pub count: u64,
    pub greatest: Option<(u64, Spot)>,
}

/// A check under way.
#[derive(Debug)]
pub struct Ctx<'a> {
    /// The walk, with its file system.
    pub walk: &'a Walk<'a>,
    /// What is asked.
    pub options: &'a Options,
    /// Who owns which block of the data section.
    pub owners: OwnerMap,
    /// Who owns which block of the realtime section: see [`OwnerMap`].
    pub rt_owners: OwnerMap,
    /// Entries that name an inode, against its link count.
    pub links: Links,
    /// What is known of the log.
    pub log: LogFacts,
    /// What is known of every inode while names are followed.
    pub names: Names,
    /// Usage of quotas as the inodes have it.
    pub quota: dquot::Counter,
    /// Shared extents of the realtime section.
    pub rt_shared: RtShared,
    /// The first inode with attributes of which the superblock does not know.
    pub unannounced: Mutex<Option<Ino>>,
    /// Why the primary superblock is believed though most copies tell something else.
    pub outvoted: Option<super::copies::Outvoted>,
    /// What could not be read.
    pub survey: Survey,
    hooks: Hooks<'a>,
    collected: Mutex<Collected>,
    /// The damage that was known when threads began to work side by side: what they find hangs on nothing that another of
    /// them found.
    frozen: Mutex<Option<Arc<Damage>>>,
    ahead: Mutex<Ahead>,
    groups: OnceLock<Vec<Group>>,
    unknown: AtomicBool,
    unjudged: AtomicBool,
    /// Are names followed though damage was found before?
    following: AtomicBool,
    done: AtomicU64,
    /// Steps that were begun and not cut short.
    steps: Mutex<Vec<&'static str>>,
    /// Inodes whose extents have fewer blocks than the inode says, and how many fewer.
    short: Mutex<BTreeSet<(u64, Ino)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Ctx<'a> {
    /// A check that begins.
    pub fn new(walk: &'a Walk<'a>, options: &'a Options, log: LogFacts, hooks: Hooks<'a>) -> Self {
        Self {
            survey: Survey::default(),
            outvoted: None,
            frozen: Mutex::default(),
            steps: Mutex::default(),
            walk,
            options,
            owners: OwnerMap::default(),
            rt_owners: OwnerMap::default(),
            links: Links::default(),
            log,
            names: Names::default(),
            quota: dquot::Counter::default(),
            rt_shared: RtShared::default(),
            unannounced: Mutex::default(),
            hooks,
            collected: Mutex::default(),
            ahead: Mutex::default(),
            groups: OnceLock::new(),
            unknown: AtomicBool::new(false),
            unjudged: AtomicBool::new(false),
            following: AtomicBool::new(false),
            done: AtomicU64::new(0),
            short: Mutex::default(),
        }
    }

    /// The file system.
    pub fn volume(&self) -> &'a Volume {
        self.walk.volume()
    }

    /// Its trusted numbers.
    pub fn geometry(&self) -> &'a Geometry {
        self.walk.geometry()
    }

    /// Sizes and features on which layouts depend.
    pub fn context(&self) -> &'a Context {
        self.walk.context()
    }

    /// Is only a part of the AGs asked for?
    pub fn is_partial(&self) -> bool {
        !self.options.ags.is_empty()
    }

    /// Is this AG asked for?
    pub fn wants(&self, ag: AgNumber) -> bool {
        self.options.ags.is_empty() || self.options.ags.contains(&ag.0)
    }

    /// Was the run told to stop?
    pub fn is_cancelled(&self) -> bool {
        self.hooks.cancel.load(Ordering::Relaxed)
    }

    /// Begins a step of the run.
    pub fn begin(&self, step: &'static str, total: u64) {
        self.done.store(0, Ordering::Relaxed);
        (self.hooks.progress)(Progress { step, done: 0, total });
    }

    /// Ends a step of the run. It was gone through wholly, unless the run was stopped meanwhile.
    pub fn end(&self, step: &'static str) {
        if !self.is_cancelled() {
            lock(&self.steps).push(step);
        }
    }

    /// Was this step gone through?
    pub fn is_done(&self, step: &str) -> bool {
        lock(&self.steps).contains(&step)
    }

    /// Lets threads work side by side: what is damaged is what was known before, until all are done.
    pub fn side_by_side<R>(&self, work: impl FnOnce() -> R) -> R {
        let before = Arc::new(lock(&self.collected).damage.clone());
        *lock(&self.frozen) = Some(before);
        let result = work();
        *lock(&self.frozen) = None;
        result
    }

    fn damage<R>(&self, ask: impl FnOnce(&Damage) -> R) -> R {
        let frozen = lock(&self.frozen).clone();
        match frozen {
            Some(damage) => ask(&damage),
            None => ask(&lock(&self.collected).damage),
        }
    }

    /// Tells that `n` more of a step are done.
    pub fn advance(&self, step: &'static str, n: u64, total: u64) {
        let done = self.done.fetch_add(n, Ordering::Relaxed).saturating_add(n);
        (self.hooks.progress)(Progress { step, done, total });
    }

    /// What was learnt of the AGs: empty before step 2 is over. In the order of their numbers; with
    /// [`Options::ags`], only those.
    pub fn groups(&self) -> &[Group] {
        self.groups.get().map_or(&[], Vec::as_slice)
    }

    /// What was learnt of an AG.
    pub fn group(&self, ag: AgNumber) -> Option<&Group> {
        self.group_at(ag).map(|(_, group)| group)
    }

    /// The same, with its place in [`Ctx::groups`]: its number, where all AGs are looked at.
    fn group_at(&self, ag: AgNumber) -> Option<(usize, &Group)> {
        let groups = self.groups();
        let number = usize::try_from(ag.0).ok()?;
        match groups.get(number) {
            Some(group) if group.ag == ag => Some((number, group)),
            _ => {
                let at = groups.binary_search_by_key(&ag, |group| group.ag).ok()?;
                Some((at, groups.get(at)?))
            }
        }
    }

    /// The sum over all AGs: known where all of them were looked at, and it is of each.
    pub fn all_groups(&self, of: impl Fn(&Group) -> Known<u64>) -> Known<u64> {
        let all = u32::try_from(self.groups().len()) == Ok(self.geometry().ag_count);
        let sum = self.groups().iter().map(of).sum::<Known<u64>>();
        if all { sum } else { Known::UNKNOWN }
    }

    /// Where tables with a place for each inode have that of `ino`; `None` where no chunk holds it.
    pub fn slot(&self, ino: Ino) -> Option<InodeSlot> {
        let (ag, agino) = self.geometry().split_inode(ino)?;
        let (at, group) = self.group_at(ag)?;
        let (chunk, within) = group.chunks.find(agino.0)?;
        let index = chunk.checked_mul(64)?.checked_add(usize::try_from(within).ok()?)?;
        let chunk = group.chunks.get(chunk)?;
        Some(InodeSlot { group: at, index, has_space: chunk.has_space(within), in_use: chunk.in_use(within) })
    }

    pub(super) fn set_groups(&self, groups: Vec<Group>) {
        self.names.begin(&groups, self.context().features.has_parent());
        // OK: called once per run; a second call would change nothing.
        let _ = self.groups.set(groups);
    }

    /// Reports that the rule is broken. With a dirty log, what recovery may put right is only counted.
    pub fn raise(&self, rule: &'static RuleInfo, spot: &Spot, found: impl fmt::Display, expected: impl fmt::Display) {
        self.report(Finding::new(rule, spot.place.field(rule.field), found, expected).about(spot.object));
    }

    /// Reports that the rule is broken, which damage of `cause` may have caused: see [`Finding::caused_by`].
    pub fn raise_of(
        &self,
        rule: &'static RuleInfo,
        spot: &Spot,
        cause: Object,
        found: impl fmt::Display,
        expected: impl fmt::Display,
    ) {
        let finding = Finding::new(rule, spot.place.field(rule.field), found, expected).about(spot.object);
        self.report(finding.caused_by(cause));
    }

    /// Raises the rule where `found` is not `right`. What is not known is not compared.
    pub fn compare(&self, rule: &'static RuleInfo, spot: &Spot, found: u64, right: &Known<u64>) {
        if let Some(right) = right.get().filter(|&&right| right != found) {
            self.raise(rule, spot, found, right);
        }
    }

    /// Is a finding of this rule told? What limits the verdict always is.
    fn is_wanted(&self, rule: &RuleInfo) -> bool {
        let wanted = |only: &String| {
            rule.id == only
                || rule.structure == only
                || rule.id.strip_prefix(only.as_str()).is_some_and(|rest| rest.starts_with('-'))
        };
        let limits = rule.class == Class::Incomplete || rule.structure == "check";
        self.options.only.is_empty() || limits || self.options.only.iter().any(wanted)
    }

    /// Reports a finding.
    pub fn report(&self, finding: Finding) {
        let rule = finding.rule;
        if self.log.explains(self.volume(), &finding) {
            if self.is_wanted(rule) {
                let mut collected = lock(&self.collected);
                collected.explained = collected.explained.saturating_add(1);
            }
            return;
        }
        let (under, most) = self.folded_under(&finding);
        let mut collected = lock(&self.collected);
        if rule.class.is_damage() {
            match finding.object {
                Object::Inode(ino) => drop(collected.damage.inodes.insert(ino)),
                Object::Space(ag) | Object::Ag(ag, _) => drop(collected.damage.ags.insert(ag)),
                _ => {}
            }
        }
        if rule.class == Class::Incomplete
            && let Object::Inode(ino) = finding.object
        {
            collected.damage.unseen.insert(ino);
        }
        if self.is_wanted(rule) {
            collected.repair.add(&finding, self.geometry().ag_count);
            collected.gathered.add(finding, under, most);
        }
    }

    /// What findings of a rule are folded by, and how many are kept before.
    fn folded_under(&self, finding: &Finding) -> (Under, usize) {
        let (object, most) = self.folded_under_object(finding);
        let detail = match finding.object {
            // What is wrong in all copies alike was written by one program at one time.
            Object::Superblock(_) if finding.rule.class != Class::Incomplete => {
                let field = finding.place.field.unwrap_or(finding.rule.field);
                return (Under { object, detail: format!("{field} {} {}", finding.found, finding.expected) }, 1);
            }
            _ if finding.rule.id == EXHAUSTED.id => return (Under { object, detail: String::new() }, 1),
            _ => String::new(),
        };
        (Under { object, detail }, most)
    }

    fn folded_under_object(&self, finding: &Finding) -> (Object, usize) {
        let follows = self.following.load(Ordering::Relaxed) || self.is_any_ag_damaged();
        if follows && super::run::may_follow(finding.rule) {
            return (Object::FileSystem, KEPT_OF_FOLLOWERS);
        }
        if let Some(cause) = finding.cause {
            return (cause, KEPT_PER_OBJECT);
        }
        let ag = match finding.object {
            Object::Inode(ino) => self.geometry().split_inode(ino).map(|(ag, _)| ag),
            Object::Space(ag) => Some(ag),
            _ => None,
        };
        let object = match (finding.object, ag) {
            (Object::Superblock(_), _) => Object::Superblock(AgNumber(0)),
            // Where the directory of the groups is damaged, all of them lack their files.
            _ if finding.rule.id == super::rt::rules::GROUP_FILE.id => Object::FileSystem,
            (_, Some(ag)) if super::run::is_of_chunks(finding.rule) => Object::Space(ag),
            (_, Some(ag)) if super::run::is_of_space(finding.rule) && self.is_ag_damaged(ag) => Object::Space(ag),
            (object, _) => object,
        };
        (object, KEPT_PER_OBJECT)
    }

    /// Reports an error of a walk. What could not be read is incomplete; what is corrupt breaks `rule`.
    pub fn error(&self, rule: &'static RuleInfo, error: &Error, object: Object) {
        match error {
            Error::Corrupt { place, what, found, expected } => {
                let place = Place::clone(place);
                let structure = format!("{} ({what})", place.structure);
                let field = place.field;
                let mut finding = Finding::new(rule, Place { structure, ..place }, found, expected).about(object);
                finding.place.field = field.or(Some(rule.field));
                self.report(finding);
            }
            _ => self.unreadable(error, object),
        }
    }

    /// Reports that something could not be looked at.
    pub fn unreadable(&self, error: &Error, object: Object) {
        let whole = || self.whole().place;
        match error {
            Error::Io { place, source } => self.unread(Place::clone(place), source, object),
            // One budget for all: it matters little where it ended.
            Error::Exhausted { steps } => {
                self.unseen(object);
                self.report(Finding::new(EXHAUSTED, whole(), steps, "fewer steps"));
            }
            other => {
                self.unseen(object);
                self.report(Finding::new(NOT_LOOKED_AT, whole(), other, "something to look at").about(object));
            }
        }
    }

    /// Notes that a structure could not be read. All that lies in one unreadable range is told at once, at the end.
    pub fn unread(&self, place: Place, why: &std::io::Error, object: Object) {
        self.unseen(object);
        // What was not read any more since the run was stopped is told as that.
        if !crate::volume::is_stopped(why) {
            let mut collected = lock(&self.collected);
            if collected.unread.len() < UNREAD {
                collected.unread.push((place, why.to_string(), object));
            }
        }
    }

    fn unseen(&self, object: Object) {
        if let Object::Inode(ino) = object {
            lock(&self.collected).damage.unseen.insert(ino);
        }
    }

    /// Reports that something of an AG was not compared, since `damaged` is.
    pub fn not_compared(&self, ag: AgNumber, damaged: &str, what: &str) {
        let spot = super::group::header_spot(self, ag, crate::volume::AgHeader::Superblock);
        let place = Place { structure: format!("AG {ag}"), ..spot.place };
        let found = match self.survey.is_whole() {
            true => format!("damage in {damaged}"),
            false => format!("damage in {damaged}, or not all of it read"),
        };
        self.raise(NOT_COMPARED, &Spot { place, object: Object::Space(ag) }, found, format_args!("{what}, compared"));
    }

    /// Names are followed from here on. Where damage was found before, what is wrong with names most likely follows from
    /// it, and is folded.
    pub fn follow_names(&self) {
        self.following.store(self.any_inode_damaged() || self.is_any_ag_damaged(), Ordering::Relaxed);
    }

    /// Was damage found in this inode?
    pub fn is_damaged(&self, ino: Ino) -> bool {
        self.damage(|damage| damage.inodes.contains(&ino))
    }

    /// Is this inode no witness: damaged, or not wholly seen?
    pub fn is_doubtful(&self, ino: Ino) -> bool {
        self.damage(|damage| damage.inodes.contains(&ino) || damage.unseen.contains(&ino))
    }

    /// Was damage found in the inode that lies there?
    pub fn is_damaged_at(&self, byte: ByteOffset) -> bool {
        self.damage(|damage| damage.inodes.iter().any(|&ino| self.geometry().inode_byte(ino) == Some(byte)))
    }

    /// Was damage found in any inode?
    pub fn any_inode_damaged(&self) -> bool {
        self.damage(|damage| !damage.inodes.is_empty())
    }

    /// Was damage found in the headers, btrees or space of this AG?
    pub fn is_ag_damaged(&self, ag: AgNumber) -> bool {
        self.damage(|damage| damage.ags.contains(&ag))
    }

    /// Notes that an object is damaged or unreadable so that the blocks it owns are not known: blocks without an owner
    /// may be its.
    pub fn owners_unknown(&self) {
        self.unknown.store(true, Ordering::Relaxed);
    }

    /// Notes that blocks without owner were found and not reported, since some owners are not known.
    pub fn lost_unjudged(&self) {
        self.unjudged.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_lost_unjudged(&self) -> bool {
        self.unjudged.load(Ordering::Relaxed)
    }

    /// Was damage found in the headers, btrees or space of any AG?
    pub fn is_any_ag_damaged(&self) -> bool {
        self.damage(|damage| !damage.ags.is_empty())
    }

    /// Notes that the extents of an inode have fewer blocks than the inode says.
    pub fn short_of(&self, ino: Ino, blocks: u64) {
        if blocks > 0 {
            let mut short = lock(&self.short);
            short.insert((blocks, ino));
            // With damage everywhere nothing is tied to one inode.
            if short.len() > SHORT {
                short.pop_last();
            }
        }
    }

    /// The inode that lacks just so many blocks.
    pub fn who_lacks(&self, blocks: u64) -> Option<Ino> {
        lock(&self.short).range((blocks, Ino(0))..).next().filter(|(lacks, _)| *lacks == blocks).map(|(_, ino)| *ino)
    }

    /// Do all owners stand in the map?
    pub fn owners_known(&self) -> bool {
        !self.unknown.load(Ordering::Relaxed) && !self.is_cancelled()
    }

    /// Compares the log sequence number of a structure with the log. One finding comes of all that are ahead.
    pub fn lsn(&self, lsn: u64, spot: impl FnOnce() -> Spot) {
        // XFS: null and zero stand in metadata that was never logged.
        if self.log.current.is_none_or(|current| lsn <= current) || lsn == u64::MAX {
            return;
        }
        let mut ahead = lock(&self.ahead);
        ahead.count = ahead.count.saturating_add(1);
        match &ahead.greatest {
            Some((greatest, _)) if *greatest > lsn => {}
            Some((greatest, at)) if *greatest == lsn => {
                let (spot, key) = (spot(), |spot: &Spot| (spot.place.device, spot.place.byte));
                if key(&spot) < key(at) {
                    ahead.greatest = Some((lsn, spot));
                }
            }
            _ => ahead.greatest = Some((lsn, spot())),
        }
    }

    pub(super) fn take_ahead(&self) -> Ahead {
        std::mem::take(&mut lock(&self.ahead))
    }

    pub(super) fn collected(&self) -> MutexGuard<'_, Collected> {
        lock(&self.collected)
    }

    pub(super) fn take_collected(&self) -> Collected {
        std::mem::take(&mut lock(&self.collected))
    }

    /// The file system as a spot: its superblock.
    pub fn whole(&self) -> Spot {
        let length = u64::from(self.context().sector_size);
        let place = Place::new(crate::units::Device::Data, crate::units::ByteOffset(0), length, "sb 0");
        Spot { place, object: Object::FileSystem }
    }

    /// A block of the data device as a spot.
    pub fn block(&self, block: FsBlock, structure: impl Into<String>, object: Object) -> Spot {
        Spot { place: self.walk.place(block, structure), object }
    }
}
