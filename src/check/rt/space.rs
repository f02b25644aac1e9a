//! Who owns what: every realtime block against the bitmap, and the owners against each other.
//!
//! Bitmap runs and extents come in the same order, so both are gone through once, side by side.

use super::files::{Look, Totals, inode_place};
use super::{Observer, Section, Sink, btrees, rules};
use crate::check::finding::Object;
use crate::format::rmapbt::owner;
use crate::units::Ino;
use crate::walk::metadir::GroupFile;
use crate::walk::rt::bitmap::{Pass, Run, scan};
use crate::walk::rt::files::{MOST, Nothing, Owned, window};
use crate::walk::rt::meta::MetaFile;
use crate::walk::rt::{self, Group};

/// A piece of the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First realtime block (`xfs_rtblock_t`).
    pub start: u64,
    /// Length in blocks.
    pub blocks: u64,
    /// Whose it is.
    pub owner: Owner,
}

/// Whose a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody's: free, by the bitmap; or in no reverse mapping, on zoned sections.
    Free,
    /// Marked used, but nothing owns it.
    Lost,
    /// The bitmap is not readable there.
    Unknown,
    /// The realtime superblock.
    Superblock,
    /// It stages a copy on write.
    Staging,
    /// A file's. The piece is the whole extent; others may overlap it.
    File(Owned),
}

/// Goes through a group from its first block on.
struct Sweep<'f> {
    group: &'f Group,
    owned: std::iter::Peekable<std::vec::IntoIter<Owned>>,
    at: u64,
    /// The end of what owners cover so far, and the last of them.
    covered: u64,
    last: Option<Owned>,
    /// May blocks have several owners?
    shares: bool,
    /// Are all owners known?
    complete: bool,
    lost: u64,
    observer: &'f mut dyn Observer,
    found: &'f mut dyn FnMut(Fault<'_>),
}

/// What a sweep finds wrong.
enum Fault<'o> {
    FreeButUsed { start: u64, end: u64, owner: &'o Owned },
    UsedButUnowned { start: u64, end: u64 },
    Partial { start: u64, end: u64, owner: Option<&'o Owned> },
    Twice { first: &'o Owned, second: &'o Owned },
}

/// What the bitmap says of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Free,
    Used,
    /// Nothing: its part is missing.
    Nothing,
    /// There is no bitmap: what has no owner is free.
    NoBitmap,
}

impl Sweep<'_> {
    fn unit(&self) -> u64 {
        self.group.extent_blocks.max(1)
    }

    fn rest(&self, block: u64) -> u64 {
        block.saturating_sub(self.group.first_block()).checked_rem(self.unit()).unwrap_or(0)
    }

    fn piece(&mut self, start: u64, end: u64, owner: Owner) {
        if end > start {
            let piece = Piece { start, blocks: end.saturating_sub(start), owner };
            self.observer.piece(self.group, &piece);
        }
    }

    /// A stretch that nothing owns.
    fn gap(&mut self, start: u64, end: u64, says: Says) {
        match says {
            Says::Free | Says::NoBitmap => self.piece(start, end, Owner::Free),
            Says::Nothing => self.piece(start, end, Owner::Unknown),
            Says::Used => {
                let unit = self.unit();
                let head = match self.rest(start) {
                    0 => start,
                    rest => start.saturating_add(unit.saturating_sub(rest)).min(end),
                };
                let tail = end.saturating_sub(self.rest(end)).max(head);
                let last = self.last;
                for (from, to) in [(start, head), (tail, end)] {
                    if to > from {
                        let owner = if from == start { last } else { self.owned.peek().copied() };
                        if self.complete {
                            (self.found)(Fault::Partial { start: from, end: to, owner: owner.as_ref() });
                        }
                        self.piece(from, to, Owner::Lost);
                    }
                }
                if tail > head {
                    self.lost = self.lost.saturating_add(tail.saturating_sub(head));
                    if self.complete {
                        (self.found)(Fault::UsedButUnowned { start: head, end: tail });
                    }
                    self.piece(head, tail, Owner::Lost);
                }
            }
        }
    }

    fn owner_of(one: Owned) -> Owner {
        match one.ino {
            owner::FS => Owner::Superblock,
            owner::COW => Owner::Staging,
            _ => Owner::File(one),
        }
    }

    /// A new owner begins: does it share with the one before what must not be shared?
    fn meet(&mut self, one: Owned) {
        if let Some(last) = self.last {
            let special = |o: &Owned| o.ino >= owner::COW;
            let overlaps = one.start < self.covered;
            let unit = self.unit();
            let extent = |block: u64| block.saturating_sub(self.group.first_block()).checked_div(unit);
            let same_extent = extent(self.covered.saturating_sub(1)) == extent(one.start);
            let one_file = last.ino == one.ino && last.delta() == one.delta();
            let wrong = if overlaps {
                !self.shares || special(&last) || special(&one) || last.unwritten || one.unwritten
            } else {
                same_extent && !one_file
            };
            if wrong {
                (self.found)(Fault::Twice { first: &last, second: &one });
            }
        }
        self.piece(one.start, one.end(), Self::owner_of(one));
        if one.end() > self.covered {
            (self.covered, self.last) = (one.end(), Some(one));
        }
    }

    /// Goes on to block `to`; all of it is as the bitmap says.
    fn advance(&mut self, to: u64, says: Says) {
        let mut at = self.at;
        while at < to {
            let covered = self.covered.min(to);
            if covered > at {
                if says == Says::Free
                    && let Some(last) = self.last
                {
                    (self.found)(Fault::FreeButUsed { start: at, end: covered, owner: &last });
                }
                at = covered;
            }
            match self.owned.next_if(|one| one.start < to) {
                Some(one) => {
                    if one.start > at {
                        self.gap(at, one.start, says);
                        at = one.start;
                    }
                    self.meet(one);
                }
                None if self.covered >= to => at = to,
                None => {
                    let from = at.max(self.covered);
                    self.gap(from, to, says);
                    at = to;
                }
            }
        }
        self.at = self.at.max(to);
    }
}

/// Compares owners with bitmaps and btrees over the whole section. Gives the figures of the files.
pub fn check(section: &Section<'_>, observer: &mut dyn Observer, sink: &mut Sink<'_>) -> Totals {
    let walk = section.walk;
    let mut look = Look::new(walk, Some(section), sink);
    let mut part = window(walk, 0, MOST, &mut look);
    let mut totals = look.totals;
    part.complete &= totals.complete;
    let mut lost = 0u64;
    loop {
        for group in section.groups() {
            sink.about(Object::Realtime(group.number));
            let range = group.range();
            if range.end <= part.range.start || range.start >= part.range.end {
                continue;
            }
            let clip = range.start.max(part.range.start)..range.end.min(part.range.end);
            let mut owned: Vec<Owned> = part.of_group(&group).collect();
            let complete = btrees::check(section, &group, &clip, &mut owned, part.complete, sink);
            totals.complete &= complete;
            lost = lost.saturating_add(sweep(section, &group, &clip, owned, complete && part.complete, observer, sink));
        }
        if part.range.end == u64::MAX {
            break;
        }
        part = window(walk, part.range.end, MOST, &mut Nothing);
        part.complete &= totals.complete;
    }
    if lost > 0 && !totals.complete && section.has_bitmap() {
        let place = section.place(0, 1, "realtime section");
        sink.raise(
            rules::NOT_COMPARED,
            place,
            format_args!("{lost} blocks without a known owner"),
            "all owners readable",
        );
    }
    totals
}

/// Sweeps one group, within `clip`. Gives how many blocks nothing owns.
fn sweep(
    section: &Section<'_>,
    group: &Group,
    clip: &std::ops::Range<u64>,
    owned: Vec<Owned>,
    complete: bool,
    observer: &mut dyn Observer,
    sink: &mut Sink<'_>,
) -> u64 {
    let first = group.first_block();
    let end = first.saturating_add(group.blocks());
    let mut found = |fault: Fault<'_>| raise(section, group, &fault, sink);
    let mut sweep = Sweep {
        group,
        owned: owned.into_iter().peekable(),
        at: first.max(clip.start),
        covered: 0,
        last: None,
        shares: section.has_reflink(),
        complete,
        lost: 0,
        observer,
        found: &mut found,
    };
    let stop = end.min(clip.end);
    if !section.has_bitmap() {
        sweep.advance(stop, Says::NoBitmap);
        return 0;
    }
    let open = rt::inode(section.walk, group.number, GroupFile::Bitmap, &mut |_| {});
    let Some(block) = open.ok().filter(|_| !section.order_in_doubt) else {
        sweep.advance(stop, Says::Nothing);
        return 0;
    };
    let file = MetaFile::new(section.walk, block, &mut |_| {});
    let pass = Pass { group, file: &file, sizes: &section.sizes, order: section.order.order() };
    let block_of = |extent: u64| first.saturating_add(extent.saturating_mul(group.extent_blocks));
    let mut each = |run: Run| {
        let (start, extents, says) = match run {
            Run::Free { start, extents } => (start, extents, Says::Free),
            Run::Unknown { start, extents } => (start, extents, Says::Nothing),
        };
        sweep.advance(block_of(start).min(stop), Says::Used);
        sweep.advance(block_of(start.saturating_add(extents)).min(stop), says);
    };
    scan(section.walk, &pass, &mut each, &mut |piece| super::group::is_bitmap(section, piece));
    sweep.advance(stop, Says::Used);
    sweep.lost
}

fn owner_name(one: &Owned) -> String {
    match one.ino {
        owner::FS => "the realtime superblock".to_owned(),
        owner::COW => "a staging extent of a copy on write".to_owned(),
        ino => format!("inode {ino} at file block {}", one.offset),
    }
}

fn raise(section: &Section<'_>, group: &Group, fault: &Fault<'_>, sink: &mut Sink<'_>) {
    let unit = group.extent_blocks.max(1);
    let extents = |start: u64, end: u64| {
        let first = start.saturating_sub(group.first_block()).checked_div(unit).unwrap_or(0);
        let last = end.saturating_sub(group.first_block()).saturating_sub(1).checked_div(unit).unwrap_or(0);
        let of = if group.shift.is_some() { format!(" of group {}", group.number) } else { String::new() };
        if last > first { format!("extents {first} to {last}{of}") } else { format!("extent {first}{of}") }
    };
    let place = |start: u64, end: u64| section.place(start, end.saturating_sub(start), extents(start, end));
    let file = |one: &Owned| (one.ino < owner::COW).then_some(Ino(one.ino));
    // A damaged inode is no witness: its extents may be what is wrong.
    let owners = match fault {
        Fault::FreeButUsed { owner, .. } => [Some(*owner), None],
        Fault::Partial { owner, .. } => [*owner, None],
        Fault::Twice { first, second } => [Some(*first), Some(*second)],
        Fault::UsedButUnowned { .. } => [None, None],
    };
    if owners.into_iter().flatten().filter_map(file).any(|ino| sink.is_damaged(ino)) {
        return;
    }
    sink.about(Object::Realtime(group.number));
    match fault {
        Fault::FreeButUsed { start, end, owner } => {
            let found = format!("{} free", extents(*start, *end));
            sink.raise(rules::FREE_BUT_USED, place(*start, *end), found, format_args!("used by {}", owner_name(owner)));
        }
        Fault::UsedButUnowned { start, end } => {
            sink.raise(
                rules::USED_BUT_UNOWNED,
                place(*start, *end),
                format_args!("{} used", extents(*start, *end)),
                "free, or an owner",
            );
        }
        Fault::Partial { start, end, owner } => {
            let found = format!("blocks {start} to {} of {}", end.saturating_sub(1), extents(*start, *end));
            let right =
                owner.map_or("an owner".to_owned(), |one| format!("owned as the rest is, by {}", owner_name(one)));
            if let Some(ino) = owner.and_then(file) {
                sink.about(Object::Inode(ino));
            }
            let at = owner
                .filter(|one| one.ino < owner::COW)
                .map_or_else(|| place(*start, *end), |one| inode_place(section, one.ino));
            sink.raise(rules::PARTIAL, at, format_args!("{found} not mapped"), right);
        }
        Fault::Twice { first, second } => {
            let (start, end) = (second.start, second.end().min(first.end()).max(second.start.saturating_add(1)));
            let found = format!("{}: {} and {}", extents(start, end), owner_name(first), owner_name(second));
            if let Some(ino) = file(second) {
                sink.about(Object::Inode(ino));
            }
            let at = if second.ino < owner::COW { inode_place(section, second.ino) } else { place(start, end) };
            sink.raise(rules::DOUBLY_USED, at, found, "one owner");
        }
    }
}
