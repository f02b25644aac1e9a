//! The order of a check, and what comes of it.

use super::context::{Collected, Ctx, EXHAUSTED, Hooks, NOT_LOOKED_AT, OWNERS_UNKNOWN, Options, Spot, UNREADABLE};
use super::finding::{Class, Finding, Object, RuleInfo};
use super::gather::{self, Told};
use super::inode::{self, Worker};
use super::pinpoint::pinpoint;
use super::{agi, attr, copies, counters, dir, dquot, fold, forks, group, inobt, journal, links, rt, space, tree};
use crate::error::{Error, Place};
use crate::format::Type;
use crate::units::{AgNumber, ByteOffset, Device, Ino, RgNumber};
use crate::volume::{Choice, Gap, Lost, Origin, Volume};
use crate::walk::inodes::{Chunks, read_many};
use crate::walk::{Walk, parallel, paths};
use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

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

/// The steps of a run, as they are called where a run was stopped.
mod step {
    pub const HEADERS: &str = "headers and btrees";
    pub const INODES: &str = "inodes";
    pub const DIRECTORIES: &str = "directories";
    pub const NAMES: &str = "names, links and quotas";
    pub const SPACE: &str = "space";
    pub const REALTIME: &str = "realtime section";
    pub const COUNTERS: &str = "counters";
    pub const ALL: [&str; 7] = [HEADERS, INODES, DIRECTORIES, NAMES, SPACE, REALTIME, COUNTERS];
}

/// The same file system through its primary superblock, where that could not be read before and can be now.
fn read_again(volume: Volume) -> Volume {
    let unread = match volume.origin() {
        Origin::Copy { reason, .. } | Origin::Inferred { reason, .. } => matches!(reason, Lost::Unreadable(_)),
        Origin::Primary | Origin::Chosen { .. } => false,
    };
    if !unread {
        return volume;
    }
    let again = Volume::open(volume.devices().clone(), Choice::default());
    match (again, volume.most_steps()) {
        (Ok(again), Some(steps)) => again.limited(steps),
        (Ok(again), None) => again,
        (Err(_), _) => volume,
    }
}

/// Checks a whole file system.
pub fn check(volume: &Volume, options: &Options, hooks: Hooks<'_>) -> Report {
    let (volume, survey) = volume.surveyed(hooks.cancel);
    let volume = read_again(volume);
    let (mut journal, mut log) = journal::facts(&volume);
    // A superblock that waits in the log may be behind its copies: grown, then crashed.
    let copies::Judgement { better, outvoted } =
        if log.superblock_waits() { copies::Judgement::default() } else { copies::judge(&volume) };
    if let Some(better) = &better {
        (journal, log) = journal::facts(better);
    }
    let volume = better.as_ref().unwrap_or(&volume);
    let walk = Walk::new(volume);
    log.unread = log.dirty.is_none() && !survey.is_whole();
    let mut ctx = Ctx::new(&walk, options, log, hooks);
    (ctx.survey, ctx.outvoted) = (survey, outvoted);
    journal::check(&ctx, &journal);
    let primary = copies::primary(volume);
    let damaged = copies::check_primary(&ctx, primary.as_ref());
    // What was not looked at any more since the run was stopped takes no step further.
    let steps: [&dyn Fn(); 6] = [
        &|| groups(&ctx, damaged.as_deref().unwrap_or_default()),
        &|| inodes(&ctx),
        &|| directories(&ctx),
        &|| names(&ctx),
        &|| spaces(&ctx),
        &|| realtime(&ctx),
    ];
    for step in steps {
        if !ctx.is_cancelled() {
            step();
        }
    }
    // Counters are those of the primary: the copies have those of mkfs.
    if let Some(primary) = primary.as_ref().filter(|_| damaged.is_some() && !ctx.is_cancelled()) {
        let spot = group::header_spot(&ctx, AgNumber(0), crate::volume::AgHeader::Superblock);
        if damaged.as_ref().is_some_and(|fields| fields.iter().all(|field| !field.ends_with("ino"))) {
            counters::root(&ctx, &primary.sb, &spot);
            counters::quota_inodes(&ctx, &primary.sb, &spot);
        }
        counters::check(&ctx, &primary.sb, &spot);
        ctx.end(step::COUNTERS);
    }
    journal::finish(&ctx);
    finish(&ctx, primary.as_ref())
}

fn groups(ctx: &Ctx<'_>, damaged: &[&'static str]) {
    let all = group::wanted(ctx);
    let total = u64::try_from(all.len()).unwrap_or(0);
    ctx.begin(step::HEADERS, total);
    let groups = ctx.side_by_side(|| {
        parallel::over(all, ctx.options.threads, |ag| {
            let group = (!ctx.is_cancelled()).then(|| {
                if ag.0 > 0 {
                    copies::check_copy(ctx, ag, damaged);
                }
                group::check(ctx, ag)
            });
            ctx.advance(step::HEADERS, 1, total);
            group
        })
    });
    ctx.set_groups(groups.into_iter().flatten().collect());
    ctx.links.begin(ctx.groups());
    agi::not_empty(ctx);
    ctx.end(step::HEADERS);
}

fn inodes(ctx: &Ctx<'_>) {
    let total = ctx.groups().iter().flat_map(|group| group.chunks.iter()).fold(0u64, |sum, _| sum.saturating_add(64));
    ctx.begin(step::INODES, total);
    let pieces: Vec<_> =
        ctx.groups().iter().flat_map(|group| group.chunks.chunks(PIECE).map(move |piece| (group.ag, piece))).collect();
    let begin = || (Worker::new(ctx), Vec::new());
    ctx.side_by_side(|| {
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
                        ctx.quota.unknown();
                        ctx.unreadable(&error, Object::Ag(ag, Type::Inobt));
                    }
                }
            }
            *buffer = chunks.into_buffer();
            // What is joined must not hang on which thread looks at which piece.
            worker.flush();
            let done = u64::try_from(piece.len()).unwrap_or(0).saturating_mul(64);
            ctx.advance(step::INODES, done, total);
        })
    });
    forks::unannounced(ctx);
    ctx.end(step::INODES);
}

/// Directories that a thread takes at a time: few, since some are large.
const DIRECTORIES: usize = 16;

fn directories(ctx: &Ctx<'_>) {
    ctx.follow_names();
    let all = ctx.names.directories(ctx);
    let total = u64::try_from(all.len()).unwrap_or(0);
    ctx.begin(step::DIRECTORIES, total);
    let begin = || dir::Worker::new(ctx);
    ctx.side_by_side(|| {
        parallel::over_with(all.chunks(DIRECTORIES), ctx.options.threads, begin, |worker, piece| {
            // The names of all that are not come to, for whatever reason, are not known.
            let mut left: BTreeSet<Ino> = piece.iter().copied().collect();
            let mut report = |ino, error| ctx.unreadable(&error, Object::Inode(ino));
            read_many(ctx.walk, &mut piece.to_vec(), &mut report, &mut |inode| {
                if !ctx.is_cancelled() {
                    left.remove(&inode.ino);
                    dir::check(worker, inode);
                }
            });
            left.into_iter().for_each(|ino| ctx.names.names_unknown(ino));
            ctx.advance(step::DIRECTORIES, u64::try_from(piece.len()).unwrap_or(0), total);
        })
    });
    ctx.end(step::DIRECTORIES);
}

fn names(ctx: &Ctx<'_>) {
    ctx.follow_names();
    tree::check(ctx);
    links::check(ctx, ctx.owners_known() && ctx.names.incomplete().is_empty());
    dquot::check(ctx);
    ctx.end(step::NAMES);
}

/// Who owns which block: everything must have been collected before.
fn spaces(ctx: &Ctx<'_>) {
    let total = u64::try_from(ctx.groups().len()).unwrap_or(0);
    ctx.begin(step::SPACE, total);
    let mut groups: Vec<_> = ctx.groups().iter().collect();
    if ctx.options.threads > 1 {
        // The AG with most of the work first: it would keep all waiting at the end.
        groups.sort_by_cached_key(|group| Reverse(ctx.owners.count(group.ag)));
    }
    ctx.side_by_side(|| {
        parallel::over(groups, ctx.options.threads, |group| {
            if !ctx.is_cancelled() {
                space::check(ctx, group);
            }
            ctx.advance(step::SPACE, 1, total);
        })
    });
    if ctx.is_lost_unjudged() {
        ctx.raise(OWNERS_UNKNOWN, &ctx.whole(), "blocks without owner", "all owners readable");
    }
    ctx.end(step::SPACE);
}

/// The realtime section: its rules stand by themselves ([`rt`]). What the steps before have said of single inodes is not
/// said again, and a damaged inode is no witness.
fn realtime(ctx: &Ctx<'_>) {
    if ctx.is_partial() {
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
    let damaged = |ino: Ino| ctx.is_doubtful(ino);
    let unread = |place: Place, why: &std::io::Error, object: Object| ctx.unread(place, why, object);
    let lsn = |lsn: u64, place: &dyn Fn() -> Place| {
        ctx.lsn(lsn, || Spot { place: place().field("lsn"), object: Object::Log });
    };
    let mut sink = rt::Sink::new(&mut out).without_witness(&damaged).with_lsns(&lsn).telling_all(&unread);
    if ctx.geometry().realtime.is_none() {
        // What inodes say of a section that is not there was said of them.
        rt::devices::check(ctx.walk, &mut sink);
        return ctx.end(step::REALTIME);
    }
    ctx.begin(step::REALTIME, 0);
    let size = ctx.context().block_size;
    // What the device alone tells, and it was not given.
    if rt::has_superblock_of_its_own(ctx.walk)
        && let Err(error @ Error::Request(_)) = ctx.volume().read(Device::Rt, ByteOffset(0), size, "rtsb")
    {
        ctx.unreadable(&error, Object::Realtime(RgNumber(0)));
    }
    rt::check(ctx.walk, rt::Depth::Everything, &mut rt::Unobserved, &mut sink);
    ctx.end(step::REALTIME);
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

fn finish(ctx: &Ctx<'_>, primary: Option<&copies::Sector>) -> Report {
    let cancelled = ctx.is_cancelled();
    unread(ctx);
    let said = ctx.collected().gathered.has(EXHAUSTED.id);
    if let Some(steps) = ctx.walk.exhausted().filter(|_| !said) {
        // Whoever met the end of the budget may have had nothing to say of it.
        ctx.unreadable(&Error::Exhausted { steps }, Object::FileSystem);
    }
    let Collected { gathered, explained, repair, .. } = ctx.take_collected();
    let Told { mut findings, mut by_rule, mut by_class, mut folded } = gathered.told();
    for finding in &mut findings {
        pinpoint(ctx.volume(), finding);
    }
    findings.sort_by(gather::in_report);
    let (mut findings, followers) = fold::fold(ctx, findings);
    for follower in &followers {
        folded = folded.saturating_add(1);
        take_one(&mut by_rule, follower.rule.id);
        take_one(&mut by_class, follower.rule.class);
    }
    findings.truncate(ctx.options.max_findings);
    if !cancelled {
        name(ctx, &mut findings);
    }
    let unjudged = unjudged(ctx, primary);
    let total = by_class.values().fold(0u64, |sum, n| sum.saturating_add(*n));
    let any = |classes: &[Class]| classes.iter().any(|class| by_class.contains_key(class));
    let verdict = if any(&[Class::Corrupt, Class::XCorrupt]) {
        Verdict::Damaged
    } else if ctx.log.dirty == Some(true) {
        Verdict::DirtyLog
    } else if cancelled || !ctx.survey.is_whole() || any(&[Class::Incomplete, Class::XFailed]) {
        Verdict::Incomplete
    } else {
        Verdict::Clean
    };
    let inodes = ctx.groups().iter().filter_map(|group| group.inodes.get()).fold(0u64, |sum, n| sum.saturating_add(*n));
    let mut repair = repair.plan();
    if !ctx.survey.gaps().is_empty() || !ctx.survey.given_up().is_empty() {
        repair.insert(0, COPY_FIRST.to_owned());
    }
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

/// What comes before every repair of a device that does not give all of its bytes.
const COPY_FIRST: &str = "copy the device first, with ddrescue, and go on with the copy: each read may be the last";

/// Structures that are named of an unreadable range.
const NAMED_OF_GAP: usize = 8;

/// Says what could not be read: each unreadable range once, with its length and what lies in it.
fn unread(ctx: &Ctx<'_>) {
    let structures = std::mem::take(&mut ctx.collected().unread);
    let inos = structures.iter().filter_map(|(_, _, object)| object.inode()).collect();
    // On the way to the names more may turn out to be unreadable.
    let paths = if ctx.is_cancelled() { Paths::new() } else { paths_of(ctx, inos) };
    let gaps = ctx.survey.gaps();
    let mut of_gap: HashMap<usize, Vec<(Place, Object)>> = HashMap::new();
    let mut lost: BTreeMap<Device, (u64, Place, String, Object)> = BTreeMap::new();
    let given_up = ctx.survey.given_up();
    for (place, why, object) in structures {
        let end = place.byte.0.saturating_add(place.length);
        let before = gaps.partition_point(|gap| (gap.device, gap.byte.0) < (place.device, end));
        let near = before.checked_sub(1).and_then(|at| Some((at, gaps.get(at)?)));
        let within = |gap: &Gap| gap.device == place.device && gap.byte.0.saturating_add(gap.length) > place.byte.0;
        match near.filter(|(_, gap)| within(gap)) {
            Some((at, _)) => of_gap.entry(at).or_default().push((place, object)),
            None if given_up.contains(&place.device) => {
                let lost = lost.entry(place.device).or_insert((0, place.clone(), why, object));
                lost.0 = lost.0.saturating_add(1);
                if place.byte < lost.1.byte {
                    (lost.1, lost.3) = (place, object);
                }
            }
            None => ctx.report(Finding::new(UNREADABLE, place, why, "readable bytes").about(object)),
        }
    }
    for (at, gap) in gaps.into_iter().enumerate() {
        let of = of_gap.remove(&at).unwrap_or_default();
        let mut object = Object::FileSystem;
        let mut names: BTreeSet<String> = BTreeSet::new();
        for (place, about) in of {
            object = if names.is_empty() { about } else { object.min(about) };
            let path = about.inode().and_then(|ino| paths.get(&ino)).map(|(path, metadir)| {
                let root = if *metadir { "(metadir)/" } else { "/" };
                format!(" ({root}{})", path.escape_ascii())
            });
            if !place.structure.is_empty() {
                names.insert(format!("{}{}", place.structure, path.unwrap_or_default()));
            }
        }
        let more = names.len().saturating_sub(NAMED_OF_GAP);
        let mut structure = names.into_iter().take(NAMED_OF_GAP).collect::<Vec<_>>().join(", ");
        if structure.is_empty() {
            structure = format!("{} device", gap.device);
        }
        if more > 0 {
            structure = format!("{structure} and {more} more");
        }
        let place = Place::new(gap.device, gap.byte, gap.length, structure);
        let found = format!("{} bytes: {}", gap.length, gap.why);
        ctx.report(Finding::new(UNREADABLE, place, found, "readable bytes").about(object));
    }
    for device in given_up {
        let (count, place, why, object) = lost.remove(&device).unwrap_or_else(|| {
            let place = Place::new(device, ByteOffset(0), 0, format!("{device} device"));
            (0, place, "given up: nothing could be read any more".to_owned(), Object::FileSystem)
        });
        let found = format!("{why} ({count} structures not looked at)");
        ctx.report(Finding::new(NOT_LOOKED_AT, place, found, "a device that can be read").about(object));
    }
}

/// Inodes whose paths are looked up at most.
const NAMED: usize = 1000;

/// A path of an inode, and whether it begins at the root of the metadata directory.
type Paths = HashMap<Ino, (Vec<u8>, bool)>;

/// Looks up the paths of inodes, the first so many of them.
fn paths_of(ctx: &Ctx<'_>, inos: BTreeSet<Ino>) -> Paths {
    if inos.is_empty() {
        return Paths::new();
    }
    let inos: Vec<Ino> = inos.into_iter().take(NAMED).collect();
    let found = paths::by_names(ctx.walk, &inos, &mut |_| {});
    let usual = |ino: &Ino| {
        let paths = found.get(ino)?;
        let from = |from| paths.iter().find(|path| path.from == from);
        let path = from(paths::From::Root).or_else(|| from(paths::From::Metadata))?;
        Some((*ino, (path.path.clone(), path.from == paths::From::Metadata)))
    };
    inos.iter().filter_map(usual).collect()
}

/// Names the inodes that findings are about.
fn name(ctx: &Ctx<'_>, findings: &mut [Finding]) {
    let paths = paths_of(ctx, findings.iter().filter_map(|finding| finding.object.inode()).collect());
    for finding in findings {
        if let Some((path, metadir)) = finding.object.inode().and_then(|ino| paths.get(&ino)) {
            (finding.object_path, finding.in_metadir) = (Some(path.clone()), *metadir);
        }
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
    if ctx.is_cancelled() {
        let left: Vec<&str> = step::ALL.into_iter().filter(|step| !ctx.is_done(step)).collect();
        if !left.is_empty() {
            list.push(format!("{}: the run was stopped before they were looked at wholly", left.join("; ")));
        }
    }
    let gaps = ctx.survey.gaps();
    if !gaps.is_empty() {
        let bytes = gaps.iter().fold(0u64, |sum, gap| sum.saturating_add(gap.length));
        let places = if gaps.len() == 1 { "place" } else { "places" };
        list.push(format!("{bytes} bytes in {} {places} that cannot be read, and what hangs on them", gaps.len()));
    }
    list
}
