//! Is the realtime section sound? Its files, what they say is free, who owns what, and whether the devices belong.
//!
//! | step | what | file |
//! |---|---|---|
//! | 1 | do the devices belong: size, realtime superblock | [`devices`] |
//! | 2 | group by group: bitmap and summary, their inodes and blocks, one against the other | [`group`] |
//! | 3 | every inode once: flags and hints, extents of realtime files | [`files`] |
//! | 4 | who owns what: bitmap against files, reverse mappings and shared extents against files | [`space`], [`btrees`] |
//!
//! All of it streams: bitmaps pass through in pieces of 2 MiB, extents of files in windows of a million.
//! The rules are in [`rules`].

pub mod btrees;
pub mod devices;
pub mod files;
pub mod group;
pub mod rules;
pub mod space;

use super::finding::{Finding, Object, RuleInfo};
use crate::error::{Error, Place};
use crate::format::rtbitmap::ByteOrder;
use crate::geometry::Realtime;
use crate::units::{Device, Ino, RgNumber};
use crate::volume::Origin;
use crate::walk::metadir;
use crate::walk::rt::{self, Sizes};
use crate::walk::{Inode, Walk};
use std::collections::BTreeMap;
use std::fmt::Display;

pub use crate::walk::rt::Group;
pub use crate::walk::rt::bitmap::Run;
pub use crate::walk::rt::files::Owned;
pub use crate::walk::rt::summary::{Cell, Histogram, Told};

/// Findings of one rule that are handed on; the rest is counted.
const KEPT_PER_RULE: u64 = 200;

/// How much of an inode is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its fields.
    Fields,
    /// Its fields and maps, and what metadata files must be.
    Whole,
}

/// Where findings go.
pub struct Sink<'s> {
    out: &'s mut dyn FnMut(Finding),
    /// What findings are about from here on.
    object: Object,
    /// Is this inode known to be damaged, so that what it says is no witness?
    damaged: &'s dyn Fn(Ino) -> bool,
    /// Told the log sequence numbers that are met, and where.
    lsn: &'s dyn Fn(u64, &dyn Fn() -> Place),
    /// What is wrong with an inode by itself, where nobody else says so.
    verify: &'s dyn Fn(Inode<'_>, Part) -> Vec<Finding>,
    by_rule: BTreeMap<&'static str, u64>,
    raised: u64,
    /// Is it something that recovery of the log may put right?
    explains: &'s dyn Fn(&Finding) -> bool,
    /// Takes what could not be read, where the caller tells that; then it counts and chooses what is told, too.
    unread: Option<&'s Unread<'s>>,
    /// Disagreements that recovery of the log may explain, and which are no findings therefore.
    pub explained: u64,
}

/// Takes the place that could not be read, what the system said, and what it is about.
pub type Unread<'u> = dyn Fn(Place, &std::io::Error, Object) + 'u;

impl<'s> Sink<'s> {
    /// Hands findings on to `out`.
    pub fn new(out: &'s mut dyn FnMut(Finding)) -> Self {
        Self {
            out,
            object: Object::FileSystem,
            damaged: &|_| false,
            lsn: &|_, _| {},
            verify: &|_, _| Vec::new(),
            by_rule: BTreeMap::new(),
            raised: 0,
            explains: &|_| false,
            unread: None,
            explained: 0,
        }
    }

    /// The same, and inodes that `damaged` names are no witnesses: nothing is said of them again, and nothing is
    /// compared with them.
    #[must_use]
    pub fn without_witness(self, damaged: &'s dyn Fn(Ino) -> bool) -> Self {
        Self { damaged, ..self }
    }

    /// The same, and `lsn` is told the log sequence numbers of blocks.
    #[must_use]
    pub fn with_lsns(self, lsn: &'s dyn Fn(u64, &dyn Fn() -> Place)) -> Self {
        Self { lsn, ..self }
    }

    /// The same, and what `verify` says of the inodes of the section is handed on.
    #[must_use]
    pub fn verifying(self, verify: &'s dyn Fn(Inode<'_>, Part) -> Vec<Finding>) -> Self {
        Self { verify, ..self }
    }

    /// The same, and what `explains` says recovery of the log may put right is counted, not handed on.
    #[must_use]
    pub fn with_log(self, explains: &'s dyn Fn(&Finding) -> bool) -> Self {
        Self { explains, ..self }
    }

    /// The same, and all findings are handed on, for a caller that chooses among them; what could not be read goes to
    /// `unread`.
    #[must_use]
    pub fn telling_all(self, unread: &'s Unread<'s>) -> Self {
        Self { unread: Some(unread), ..self }
    }

    /// A log sequence number was met.
    pub fn lsn(&self, lsn: u64, place: &dyn Fn() -> Place) {
        (self.lsn)(lsn, place);
    }

    /// What findings are about from here on.
    pub fn about(&mut self, object: Object) {
        self.object = object;
    }

    /// Is this inode known to be damaged?
    pub fn is_damaged(&self, ino: Ino) -> bool {
        (self.damaged)(ino)
    }

    /// Raises a rule.
    pub fn raise(&mut self, rule: &'static RuleInfo, place: Place, found: impl Display, expected: impl Display) {
        let place = if place.field.is_none() { place.field(rule.field) } else { place };
        self.hand_on(Finding::new(rule, place, found, expected).about(self.object));
    }

    fn hand_on(&mut self, finding: Finding) {
        if (self.explains)(&finding) {
            self.explained = self.explained.saturating_add(1);
            return;
        }
        self.raised = self.raised.saturating_add(1);
        let count = self.by_rule.entry(finding.rule.id).or_insert(0);
        *count = count.saturating_add(1);
        if *count <= KEPT_PER_RULE || self.unread.is_some() {
            (self.out)(finding);
        }
    }

    /// Findings so far.
    pub fn raised(&self) -> u64 {
        self.raised
    }

    /// Hands on what is wrong with an inode by itself.
    pub fn verify(&mut self, inode: Inode<'_>, part: Part) {
        (self.verify)(inode, part).into_iter().for_each(|finding| self.hand_on(finding));
    }

    /// Raises `damaged` for damage and `unreadable` for bytes that could not be read.
    pub fn error(&mut self, damaged: &'static RuleInfo, unreadable: &'static RuleInfo, error: &Error) {
        match error {
            Error::Corrupt { place, what, found, expected } => {
                self.raise(damaged, (**place).clone(), format_args!("{found} ({what})"), expected);
            }
            Error::Io { place, source } => match self.unread {
                Some(unread) => unread((**place).clone(), source, self.object),
                None => self.raise(unreadable, (**place).clone(), source, "readable bytes"),
            },
            Error::Unsupported { place, what } => {
                self.raise(unreadable, (**place).clone(), what, "something this program knows");
            }
            other => {
                let place = Place::new(Device::Data, crate::units::ByteOffset(0), 0, "realtime section");
                self.raise(unreadable, place, other, "something readable");
            }
        }
    }

    /// Says why a file was not found, as [`Sink::error`] does; `said` is what was met on the way. Where a part of the way
    /// could not be looked at, a file that was not found is not missing. Gives whether it is.
    pub fn not_found(
        &mut self,
        missing: &'static RuleInfo,
        unreadable: &'static RuleInfo,
        said: &[Error],
        error: &Error,
    ) -> bool {
        let unseen = |error: &Error| matches!(error, Error::Io { .. } | Error::Exhausted { .. });
        if unseen(error) {
            self.error(missing, unreadable, error);
        }
        if unseen(error) || said.iter().any(unseen) {
            said.iter().for_each(|error| self.error(missing, unreadable, error));
            return false;
        }
        true
    }

    /// Findings of rules that were raised more often than they were handed on, with how often.
    pub fn suppressed(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.by_rule.iter().filter(|(_, n)| **n > KEPT_PER_RULE).map(|(id, n)| (*id, n.saturating_sub(KEPT_PER_RULE)))
    }

    /// How often a rule was raised.
    pub fn count(&self, rule: &RuleInfo) -> u64 {
        self.by_rule.get(rule.id).copied().unwrap_or(0)
    }
}

impl std::fmt::Debug for Sink<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sink {:?}", self.by_rule)
    }
}

/// In what order the words of a classic section are, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// With realtime groups words are always big-endian.
    Groups,
    /// Bitmap and summary agree in this order only.
    Agrees(ByteOrder),
    /// They agree in either order, or differ in both: this is the usual one.
    Assumed(ByteOrder),
}

impl Order {
    /// The order.
    pub const fn order(self) -> ByteOrder {
        match self {
            Self::Groups => ByteOrder::Big,
            Self::Agrees(order) | Self::Assumed(order) => order,
        }
    }
}

/// What is known of the section before anything is compared.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// The walk.
    pub walk: &'a Walk<'a>,
    /// The section.
    pub rt: &'a Realtime,
    /// Sizes of bitmap and summary.
    pub sizes: Sizes,
    /// Byte order of their words.
    pub order: Order,
    /// May the order have come out otherwise, had all of bitmap and summary been read?
    pub order_in_doubt: bool,
}

impl<'a> Section<'a> {
    /// The section of a file system; `None` where it has none.
    pub fn new(walk: &'a Walk<'a>) -> Option<Self> {
        let rt = walk.geometry().realtime.as_ref()?;
        let sizes = rt::sizes(walk, rt);
        let mut section = Self { walk, rt, sizes, order: Order::Groups, order_in_doubt: false };
        if rt.groups.is_none() {
            (section.order, section.order_in_doubt) = group::find_order(&section);
        }
        Some(section)
    }

    /// Its groups, in order; one where there are no groups. Ends when the budget of steps does.
    pub fn groups(&self) -> impl Iterator<Item = Group> + '_ {
        (0..rt::count(self.rt))
            .take_while(|_| self.walk.step(1).is_ok())
            .map_while(|number| rt::group(self.rt, RgNumber(number)))
    }

    /// Has it bitmaps? Zoned sections have none.
    pub fn has_bitmap(&self) -> bool {
        !self.walk.context().features.has_zoned()
    }

    /// Has it reverse mappings?
    pub fn has_rmap(&self) -> bool {
        self.rt.groups.is_some() && self.walk.context().features.has_rmapbt()
    }

    /// Can its files share extents?
    pub fn has_reflink(&self) -> bool {
        self.rt.groups.is_some() && self.walk.context().features.has_reflink()
    }

    /// Does a realtime superblock take the first extent (`xfs_has_rtsb`)?
    pub fn has_superblock(&self) -> bool {
        self.rt.groups.is_some() && !self.walk.context().features.has_zoned()
    }

    /// The place of realtime blocks on their device.
    pub fn place(&self, block: u64, blocks: u64, name: impl Into<String>) -> Place {
        let geometry = self.walk.geometry();
        let at = geometry.rt_block_byte(crate::units::RtBlock(block));
        let (device, byte) = at.unwrap_or((self.rt.device, crate::units::ByteOffset(0)));
        Place::new(device, byte, blocks.saturating_mul(geometry.block_size()), name)
    }
}

/// The directories on the way to the files of groups, as far as they can be found.
pub fn group_files(walk: &Walk<'_>) -> Vec<Ino> {
    let groups = metadir::open(walk, "rtgroups", &mut |_| {}).ok().map(|block| block.inode().ino);
    metadir::root(walk).into_iter().chain(groups).collect()
}

/// Does the realtime device begin with a superblock?
pub fn has_superblock_of_its_own(walk: &Walk<'_>) -> bool {
    let rt = walk.geometry().realtime.as_ref();
    rt.is_some_and(|rt| rt.groups.is_some() && rt.device == Device::Rt) && !walk.context().features.has_zoned()
}

/// Free and used over the whole section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Realtime extents.
    pub extents: u64,
    /// Free ones.
    pub free: u64,
    /// Those of which nothing is known.
    pub unknown: u64,
    /// Free runs.
    pub runs: u64,
    /// Longest free run.
    pub longest: u64,
    /// Is the last extent of the section free: the run that ends there.
    pub last_run: u64,
    /// Bits set behind the last extent.
    pub beyond: u64,
    /// Free runs by power of two.
    pub histogram: Histogram,
    /// Words of the summary that differ from the bitmap.
    pub differ: u64,
    /// Were all parts of bitmap and summary there?
    pub complete: bool,
    /// Zones that are empty, open, full, as far as the disk tells.
    pub zones: [u64; 3],
    /// Blocks in use in zones.
    pub zone_blocks: u64,
}

/// What to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Bitmaps and summaries.
    Bitmaps,
    /// Inodes and btrees, too.
    Everything,
}

/// Receives what is seen on the way. All in the order of the section.
pub trait Observer {
    /// A run of extents of a group, by the bitmap.
    fn run(&mut self, _group: &Group, _run: Run) {}
    /// A word of a summary.
    fn summary(&mut self, _group: &Group, _told: &Told) {}
    /// A group, once it was looked at.
    fn group(&mut self, _report: &group::Report) {}
    /// A piece of the section and its owner.
    fn piece(&mut self, _group: &Group, _piece: &space::Piece) {}
}

/// Looks at nothing.
#[derive(Debug)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// What a look at the section gave.
#[derive(Clone, Debug)]
pub struct Report {
    /// Byte order of bitmap and summary.
    pub order: Order,
    /// Sizes of bitmap and summary as they must be.
    pub sizes: Sizes,
    /// Free and used.
    pub totals: Totals,
    /// Free extents as the primary superblock counts them; `None` where it cannot be read. Copies do not count.
    pub free_in_superblock: Option<u64>,
    /// Its files, where inodes were looked at.
    pub files: Option<files::Totals>,
}

/// Looks at the realtime section of a file system. Where there is none, only inodes that speak of one are looked for,
/// and `None` comes back.
///
/// Memory: 4 MiB, and with [`Depth::Everything`] 40 bytes for each extent of a realtime file, up to 2 million, the
/// records of one realtime group, and what a walk over inodes takes.
pub fn check(walk: &Walk<'_>, depth: Depth, observer: &mut dyn Observer, sink: &mut Sink<'_>) -> Option<Report> {
    sink.about(Object::Realtime(RgNumber(0)));
    devices::check(walk, sink);
    let Some(section) = Section::new(walk) else {
        if depth == Depth::Everything {
            files::without_section(walk, sink);
        }
        return None;
    };
    let mut totals = Totals { complete: true, ..Totals::default() };
    let (mut absent, mut visited) = (0u32, 0u32);
    for group in section.groups() {
        visited = visited.saturating_add(1);
        sink.about(Object::Realtime(group.number));
        let before = sink.raised();
        let report = group::check(&section, &group, observer, sink);
        // What is wrong with a file by itself is most often what was said already.
        if depth == Depth::Everything && sink.raised() == before {
            group::verify(&section, &group, sink);
        }
        totals.add(&report);
        observer.group(&report);
        absent = if report.is_absent() { absent.saturating_add(1) } else { 0 };
        if absent >= 64 {
            // No sound file system is like that: a count of groups that is nothing but damage.
            totals.complete = false;
            break;
        }
    }
    sink.about(Object::FileSystem);
    let free_in_superblock = counted(walk);
    // Groups that were not come to count for nothing.
    if visited == rt::count(section.rt) {
        totals.check(&section, free_in_superblock, sink);
    }
    let files = (depth == Depth::Everything).then(|| space::check(&section, observer, sink));
    Some(Report { order: section.order, sizes: section.sizes, totals, free_in_superblock, files })
}

/// frextents of the primary superblock: that of a copy, through which the file system may have been opened, is as mkfs
/// left it.
fn counted(walk: &Walk<'_>) -> Option<u64> {
    let volume = walk.volume();
    if matches!(volume.origin(), Origin::Primary) {
        return Some(volume.superblock().frextents);
    }
    let primary = super::copies::primary(volume).filter(super::copies::Sector::is_readable)?;
    (primary.sb.metadata_uuid() == volume.superblock().metadata_uuid()).then_some(primary.sb.frextents)
}

impl Totals {
    fn add(&mut self, report: &group::Report) {
        let count = report.count;
        self.extents = self.extents.saturating_add(report.group.extents);
        self.free = self.free.saturating_add(count.free);
        self.unknown = self.unknown.saturating_add(count.unknown);
        self.runs = self.runs.saturating_add(count.runs);
        self.longest = self.longest.max(count.longest);
        self.last_run = count.last_run;
        self.beyond = self.beyond.saturating_add(count.beyond);
        self.histogram.merge(&report.histogram);
        self.differ = self.differ.saturating_add(report.differ);
        self.complete &= report.complete;
        if let Some(zone) = &report.zone {
            let at = ["empty", "open", "full"].iter().position(|name| *name == zone.state());
            if let Some(n) = at.and_then(|at| self.zones.get_mut(at)) {
                *n = n.saturating_add(1);
            }
            self.zone_blocks = self.zone_blocks.saturating_add(zone.used);
        }
    }

    /// The superblock's count against the bitmap's.
    fn check(&self, section: &Section<'_>, told: Option<u64>, sink: &mut Sink<'_>) {
        let Some(told) = told.filter(|&told| section.has_bitmap() && self.unknown == 0 && told != self.free) else {
            return;
        };
        let place = Place::new(Device::Data, crate::units::ByteOffset(0), 512, "sb 0");
        sink.raise(rules::FREE_COUNT, place, told, format_args!("{}, as the bitmap has", self.free));
    }
}
