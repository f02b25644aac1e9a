//! The order of a check, and what comes of it.

use super::context::{Collected, Ctx, Hooks, OWNERS_UNKNOWN, Options, Spot};
use super::finding::{Class, Finding, Object, RuleInfo};
use super::inode::{self, Worker};
use super::pinpoint::pinpoint;
use super::{attr, copies, counters, dir, dquot, fold, group, inobt, journal, links, rt, space, tree};
use crate::error::Place;
use crate::format::Type;
use crate::units::{AgNumber, Ino};
use crate::volume::Volume;
use crate::walk::inodes::{Chunks, read_many};
use crate::walk::{Walk, parallel, paths};
use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// The answer of a check in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing wrong, everything looked at.
    Clean,
    /// Damage.
    Damaged,
    /// The log is dirty; nothing is wrong that recovery could not explain.
    DirtyLog,
    /// Nothing wrong, not everything looked at or compared.
    Incomplete,
}

impl Verdict {
    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Damaged => "damaged",
            Self::DirtyLog => "dirty-log",
            Self::Incomplete => "incomplete",
        }
    }
}

/// Figures of a check.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The answer.
    pub verdict: Verdict,
    /// All findings, those that were not kept included.
    pub findings: u64,
    /// All findings, by class.
    pub by_class: BTreeMap<Class, u64>,
    /// All findings, by rule.
    pub by_rule: BTreeMap<&'static str, u64>,
    /// Observations that were left out, since recovery of the log may explain them.
    pub explained: u64,
    /// Findings that are folded under another one: of the same rule and object, or one that they follow from; not counted above.
    pub folded: u64,
    /// Was the run stopped?
    pub cancelled: bool,
    /// Inodes that have space, by the inode btrees.
    pub inodes: u64,
    /// AGs that were looked at.
    pub ags: u32,
    /// What was not judged, beyond what findings say.
    pub unjudged: Vec<String>,
    /// What a repair would have to do.
    pub repair: Vec<String>,
}

/// What a check gives.
#[derive(Clone, Debug)]
pub struct Report {
    /// The findings, in the order of the disk.
    pub findings: Vec<Finding>,
    /// Figures.
    pub summary: Summary,
}

/// Chunks that a thread takes at a time: 8 MiB of inodes of 512 bytes.
const PIECE: usize = 256;

/// Checks a whole file system.
pub fn check(volume: &Volume, options: &Options, hooks: Hooks<'_>) -> Report {
    let (mut journal, mut log) = journal::facts(volume);
    // A superblock that waits in the log may be behind its copies: grown, then crashed.
    let better = if log.superblock_waits() { None } else { copies::better_volume(volume) };
    if let Some(better) = &better {
        (journal, log) = journal::facts(better);
    }
    let volume = better.as_ref().unwrap_or(volume);
    let walk = Walk::new(volume);
    let ctx = Ctx::new(&walk, options, log, hooks);
    journal::check(&ctx, &journal);
    let primary = copies::primary(volume);
    let damaged = primary.as_ref().and_then(|primary| copies::check_primary(&ctx, primary));
    groups(&ctx, damaged.as_deref().unwrap_or_default());
    inodes(&ctx);
    directories(&ctx);
    spaces(&ctx);
    realtime(&ctx);
    let sector = primary;
    // Counters are those of the primary: the copies have those of mkfs.
    if let Some(primary) = sector.as_ref().filter(|_| damaged.is_some()) {
        let spot = group::header_spot(&ctx, AgNumber(0), crate::volume::AgHeader::Superblock);
        if damaged.as_ref().is_some_and(|fields| fields.iter().all(|field| !field.ends_with("ino"))) {
            counters::root(&ctx, &primary.sb, &spot);
            counters::quota_inodes(&ctx, &primary.sb, &spot);
        }
        counters::check(&ctx, &primary.sb, &spot);
    }
    journal::finish(&ctx);
    let unjudged = unjudged(&ctx, sector.as_ref());
    finish(&ctx, unjudged)
}

fn groups(ctx: &Ctx<'_>, damaged: &[&'static str]) {
    const STEP: &str = "headers and btrees";
    let all = group::wanted(ctx);
    let total = u64::try_from(all.len()).unwrap_or(0);
    ctx.begin(STEP, total);
    let groups = parallel::over(all, ctx.options.threads, |ag| {
        let group = (!ctx.is_cancelled()).then(|| {
            if ag.0 > 0 {
                copies::check_copy(ctx, ag, damaged);
            }
            group::check(ctx, ag)
        });
        ctx.advance(STEP, 1, total);
        group
    });
    ctx.set_groups(groups.into_iter().flatten().collect());
    ctx.links.begin(ctx.groups());
}

fn inodes(ctx: &Ctx<'_>) {
    const STEP: &str = "inodes";
    let total = ctx.groups().iter().fold(0u64, |sum, group| sum.saturating_add(group.inodes));
    ctx.begin(STEP, total);
    let pieces: Vec<_> =
        ctx.groups().iter().flat_map(|group| group.chunks.chunks(PIECE).map(move |piece| (group.ag, piece))).collect();
    let begin = || (Worker::new(ctx), Vec::new());
    parallel::over_with(pieces, ctx.options.threads, begin, |(worker, buffer), (ag, piece)| {
        if ctx.is_cancelled() {
            return;
        }
        let mut chunks = Chunks::of_records(ctx.walk, ag, piece.iter().copied(), std::mem::take(buffer));
        while let Some(chunk) = chunks.next_chunk() {
            match chunk {
                Ok(chunk) => inode::chunk(worker, &chunk),
                Err(error) => {
                    ctx.owners_unknown();
                    ctx.unreadable(&error, Object::Ag(ag, Type::Inobt));
                }
            }
        }
        *buffer = chunks.into_buffer();
        // What is joined must not hang on which thread looks at which piece.
        worker.flush();
        let done = u64::try_from(piece.len()).unwrap_or(0).saturating_mul(64);
        ctx.advance(STEP, done, total);
    });
}

/// Directories that a thread takes at a time: few, since some are large.
const DIRECTORIES: usize = 16;

fn directories(ctx: &Ctx<'_>) {
    const STEP: &str = "directories";
    ctx.follow_names();
    let all = ctx.names.directories(ctx);
    let total = u64::try_from(all.len()).unwrap_or(0);
    ctx.begin(STEP, total);
    let begin = || dir::Worker::new(ctx);
    parallel::over_with(all.chunks(DIRECTORIES).collect(), ctx.options.threads, begin, |worker, piece| {
        let mut report = |ino, error| {
            ctx.names.names_unknown(ino);
            ctx.unreadable(&error, Object::Inode(ino));
        };
        read_many(ctx.walk, &mut piece.to_vec(), &mut report, &mut |inode| {
            if !ctx.is_cancelled() {
                dir::check(worker, inode);
            }
        });
        ctx.advance(STEP, u64::try_from(piece.len()).unwrap_or(0), total);
    });
    ctx.follow_names();
    tree::check(ctx);
    links::check(ctx, ctx.owners_known() && ctx.names.incomplete().is_empty());
    dquot::check(ctx);
}

/// Who owns which block: everything must have been collected before.
fn spaces(ctx: &Ctx<'_>) {
    const STEP: &str = "space";
    let total = u64::try_from(ctx.groups().len()).unwrap_or(0);
    ctx.begin(STEP, total);
    let mut groups: Vec<_> = ctx.groups().iter().collect();
    if ctx.options.threads > 1 {
        // The AG with most of the work first: it would keep all waiting at the end.
        groups.sort_by_cached_key(|group| Reverse(ctx.owners.count(group.ag)));
    }
    parallel::over(groups, ctx.options.threads, |group| {
        if !ctx.is_cancelled() {
            space::check(ctx, group);
        }
        ctx.advance(STEP, 1, total);
    });
    if ctx.is_lost_unjudged() {
        ctx.raise(OWNERS_UNKNOWN, &ctx.whole(), "blocks without owner", "all owners readable");
    }
}

/// The realtime section: its rules stand by themselves ([`rt`]). What the steps before have said of single inodes is not
/// said again, and a damaged inode is no witness.
fn realtime(ctx: &Ctx<'_>) {
    if ctx.is_partial() || ctx.is_cancelled() {
        return;
    }
    // Where a directory on the way is damaged, its files cannot be found: that was said of the directory.
    let group_files = rt::group_files(ctx.walk);
    let way = group_files.into_iter().any(|ino| ctx.is_damaged(ino));
    let has = |rules: &[&RuleInfo], finding: &Finding| rules.iter().any(|rule| rule.id == finding.rule.id);
    let mut out = |finding: Finding| {
        let said = has(&rt::rules::OF_INODES, &finding)
            || finding.rule.id == rt::rules::FLAG_FILESTREAM.id
            || has(&rt::rules::NOT_FOUND, &finding) && (way || ctx.is_damaged_at(finding.place.byte));
        if !said {
            ctx.report(finding);
        }
    };
    let damaged = |ino: Ino| ctx.is_damaged(ino);
    let lsn = |lsn: u64, place: &dyn Fn() -> Place| {
        ctx.lsn(lsn, || Spot { place: place().field("lsn"), object: Object::Log });
    };
    let mut sink = rt::Sink::new(&mut out).without_witness(&damaged).with_lsns(&lsn);
    if ctx.geometry().realtime.is_none() {
        // What inodes say of a section that is not there was said of them.
        rt::devices::check(ctx.walk, &mut sink);
        return;
    }
    ctx.begin("realtime section", 0);
    rt::check(ctx.walk, rt::Depth::Everything, &mut rt::Unobserved, &mut sink);
}

/// Rules about names that may be broken only because a directory, or an inode btree, is damaged.
const FOLLOWS: &[&RuleInfo] = &[
    attr::PARENT_NOWHERE,
    dir::NO_INODE,
    dir::FREE_INODE,
    tree::DISCONNECTED,
    tree::TWO_PARENTS,
    tree::BAD_DOTDOT,
    tree::NO_POINTER,
    tree::NO_ENTRY,
    tree::OTHER_POINTER,
    links::NLINK,
    links::ORPHAN,
];

/// May what this rule says follow from damage elsewhere?
pub(super) fn may_follow(rule: &RuleInfo) -> bool {
    FOLLOWS.iter().any(|follows| follows.id == rule.id)
}

/// Rules that a record of the inode btree, or a block of inodes, breaks with one inode after the other.
const OF_CHUNKS: &[&RuleInfo] =
    &[inode::BAD_MAGIC, inobt::ZEROED, inobt::NO_INODES, inobt::FREE_INODE, inobt::USED_INODE];

/// Is one finding of this rule most likely one of many of the same chunks?
pub(super) fn is_of_chunks(rule: &RuleInfo) -> bool {
    OF_CHUNKS.iter().any(|of| of.id == rule.id)
}

/// Rules about blocks that damage in the headers and btrees of the AG breaks with one owner after the other.
const OF_SPACE: &[&RuleInfo] = &[space::TWICE, space::FREE_IN_USE];

/// May many findings of this rule follow from damage in the AG?
pub(super) fn is_of_space(rule: &RuleInfo) -> bool {
    OF_SPACE.iter().any(|of| of.id == rule.id)
}

/// Counts one less; what is none is not kept.
fn take_one<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K) {
    if let Entry::Occupied(mut count) = counts.entry(key) {
        match count.get().saturating_sub(1) {
            0 => drop(count.remove()),
            less => *count.get_mut() = less,
        }
    }
}

fn finish(ctx: &Ctx<'_>, unjudged: Vec<String>) -> Report {
    let cancelled = ctx.is_cancelled();
    let collected = ctx.take_collected();
    let Collected { mut findings, mut by_rule, mut by_class, explained, mut folded, .. } = collected;
    for finding in &mut findings {
        pinpoint(ctx.volume(), finding);
    }
    // Damage first, then what could not be judged because of it, then what is merely odd; each in the order of the disk.
    findings.sort_by(|a, b| {
        let key = |finding: &Finding| {
            let rank = match finding.rule.class {
                Class::Corrupt | Class::XCorrupt => 0,
                Class::XFailed => 1,
                Class::Incomplete => 2,
                Class::Preen | Class::Warning => 3,
            };
            (rank, finding.place.device, finding.place.byte)
        };
        key(a).cmp(&key(b)).then_with(|| a.rule.id.cmp(b.rule.id))
    });
    let repair = repair(ctx.geometry().ag_count, &findings);
    let (mut findings, followers) = fold::fold(ctx, findings);
    for follower in &followers {
        folded = folded.saturating_add(1);
        take_one(&mut by_rule, follower.rule.id);
        take_one(&mut by_class, follower.rule.class);
    }
    if !cancelled {
        name(ctx, &mut findings);
    }
    let total = by_class.values().fold(0u64, |sum, n| sum.saturating_add(*n));
    let any = |classes: &[Class]| classes.iter().any(|class| by_class.contains_key(class));
    let verdict = if any(&[Class::Corrupt, Class::XCorrupt]) {
        Verdict::Damaged
    } else if ctx.log.dirty == Some(true) {
        Verdict::DirtyLog
    } else if cancelled || any(&[Class::Incomplete, Class::XFailed]) {
        Verdict::Incomplete
    } else {
        Verdict::Clean
    };
    let inodes = ctx.groups().iter().fold(0u64, |sum, group| sum.saturating_add(group.inodes));
    let summary = Summary {
        verdict,
        findings: total,
        by_class,
        by_rule,
        explained,
        folded,
        cancelled,
        inodes,
        ags: u32::try_from(ctx.groups().len()).unwrap_or(u32::MAX),
        unjudged,
        repair,
    };
    Report { findings, summary }
}

/// Inodes whose paths are looked up at most.
const NAMED: usize = 1000;

/// Looks up the paths of the inodes that findings are about.
fn name(ctx: &Ctx<'_>, findings: &mut [Finding]) {
    let inos: BTreeSet<Ino> = findings.iter().filter_map(|finding| finding.object.inode()).take(NAMED).collect();
    if inos.is_empty() {
        return;
    }
    let inos: Vec<Ino> = inos.into_iter().collect();
    let found = paths::by_names(ctx.walk, &inos, &mut |_| {});
    for finding in findings {
        let paths = finding.object.inode().and_then(|ino| found.get(&ino));
        let from = |from| paths.and_then(|paths| paths.iter().find(|path| path.from == from));
        let usual = from(paths::From::Root).or_else(|| from(paths::From::Metadata));
        finding.object_path = usual.map(|path| path.path.clone());
        finding.in_metadir = usual.is_some_and(|path| path.from == paths::From::Metadata);
    }
}

/// What a repair would have to do about a superblock.
fn superblock(ag_count: u32, ag: AgNumber, finding: &Finding) -> (u8, String) {
    let field = finding.place.field.unwrap_or(finding.rule.field);
    let whole =
        ["sb-bad-crc", "sb-bad-magic", copies::UNUSABLE.id, copies::PRIMARY_DIFFERS.id, copies::COPY_DIFFERS.id];
    match (ag.0, whole.contains(&finding.rule.id)) {
        (0, _) if finding.rule.id == copies::NEEDS_REPAIR.id => (11, "clear the mark once all is sound".to_owned()),
        (0, true) if ag_count == 1 => (0, "write a new superblock: there is no copy".to_owned()),
        (0, true) => (0, "write the primary superblock from its copies".to_owned()),
        (_, true) => (1, format!("write superblock copy {ag} from the primary")),
        (0, false) if counters::COUNTED.contains(&finding.rule.id) => {
            (10, format!("count {field} of the superblock anew"))
        }
        (_, false) => (0, format!("mend {field} of superblock {ag}")),
    }
}

/// What was not judged, beyond what findings say.
fn unjudged(ctx: &Ctx<'_>, primary: Option<&copies::Sector>) -> Vec<String> {
    let mut list = Vec::new();
    if ctx.log.dirty == Some(true)
        && let Some(sb) = primary.map(|primary| &primary.sb)
    {
        list.push(format!(
            "the counters of the superblock (icount {}, ifree {}, fdblocks {}): recovery counts anew",
            sb.icount, sb.ifree, sb.fdblocks
        ));
    }
    if ctx.is_partial() {
        list.push(
            "lost and shared blocks, names and link counts, quotas, the realtime section, counters: they need all AGs"
                .to_owned(),
        );
    }
    list
}

/// What a repair would have to do about these findings, in plain words, each once.
fn repair(ag_count: u32, findings: &[Finding]) -> Vec<String> {
    let mut steps: BTreeSet<(u8, String)> = BTreeSet::new();
    for finding in findings.iter().filter(|finding| finding.rule.class.is_damage()) {
        steps.insert(match finding.object {
            _ if finding.rule.id == inobt::ZEROED.id => {
                (7, format!("clear {} and every name that leads there", finding.place.structure))
            }
            _ if [links::ORPHAN.id, tree::DISCONNECTED.id].contains(&finding.rule.id) => {
                (8, "put what has no name into lost+found".to_owned())
            }
            _ if finding.rule.id == links::NLINK.id => (8, "set link counts to the number of names".to_owned()),
            _ if [tree::NO_POINTER.id, tree::NO_ENTRY.id, tree::OTHER_POINTER.id].contains(&finding.rule.id) => {
                (8, "rebuild parent pointers from the directories".to_owned())
            }
            Object::Superblock(ag) => superblock(ag_count, ag, finding),
            Object::Ag(ag, Type::Agf | Type::Agfl | Type::Bnobt | Type::Cntbt) | Object::Space(ag) => {
                (2, format!("rebuild the free space btrees and headers of AG {ag}"))
            }
            Object::Ag(ag, Type::Agi | Type::Inobt | Type::Finobt) => {
                (3, format!("rebuild the inode btrees of AG {ag}"))
            }
            Object::Ag(ag, Type::Rmapbt) => (4, format!("rebuild the reverse mapping btree of AG {ag}")),
            Object::Ag(ag, Type::Refcntbt) => (5, format!("rebuild the refcount btree of AG {ag}")),
            Object::Ag(ag, _) => (6, format!("rebuild the headers of AG {ag}")),
            Object::Inode(ino) => (7, format!("mend or clear inode {ino}")),
            Object::Realtime(group) => (8, format!("rebuild the metadata of realtime group {group}")),
            Object::Log if finding.rule.id == journal::AHEAD.id => (9, "move the log on".to_owned()),
            Object::Log if finding.rule.id == journal::FOREIGN.id => {
                (0, "be kept from doing anything until the right log is found".to_owned())
            }
            Object::Log => {
                (9, "throw the log away (xfs_repair -L), and with it all changes that wait in it".to_owned())
            }
            _ if finding.rule.id == copies::DEVICE_SHORT.id => {
                (0, "wait: make the device as long as the file system first".to_owned())
            }
            Object::FileSystem => (10, "count the superblock's counters anew".to_owned()),
        });
    }
    steps.into_iter().map(|(_, text)| text).collect()
}
