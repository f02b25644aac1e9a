//! What is known of every inode while names are followed: what it is, how many entries name it, and whether its parent
//! pointers agree with those entries.
//!
//! Memory: 1 byte for each inode with space, 8 more where there are parent pointers; 32 for each directory.

use super::context::{Ctx, InodeSlot};
use super::group::Group;
use crate::format::dinode_view::Kind;
use crate::units::{AgIno, AgNumber, Ino};
use crate::walk::Inode;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Bits of what is known of an inode: its file type as directory entries have it, and …
const TYPE: u8 = 0x07;
/// … its extent maps were wholly seen.
const MAPPED: u8 = 0x08;
/// … it is not what it should be, as was reported.
const DAMAGED: u8 = 0x10;
/// … no links by its own count.
const UNLINKED: u8 = 0x20;
/// … a file of the metadata directory.
const METADATA: u8 = 0x40;
/// … not all of its parent pointers are known.
const PARENTS_UNKNOWN: u8 = 0x80;

/// What an entry leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Not known: not looked at, or the inode btree is not to be believed.
    Unknown,
    /// There is no space for such an inode.
    Absent,
    /// A free inode.
    Free,
    /// A damaged one, as was reported.
    Damaged,
    /// An inode in use.
    Inode {
        /// File type (`XFS_DIR3_FT_*`).
        ftype: u8,
        /// Is it part of the metadata directory?
        metadata: bool,
        /// Has it no links, by its own count?
        unlinked: bool,
    },
}

/// The inodes of an AG, 64 for each chunk; see [`InodeSlot`].
#[derive(Debug)]
struct Table {
    kinds: Vec<AtomicU8>,
    /// Entries minus parent pointers, each as a number that stands for it.
    balance: Vec<AtomicU64>,
}

/// A directory and the directory that it is said to lie in.
pub type Pair = (Ino, Ino);

/// The inodes of a file system.
#[derive(Debug, Default)]
pub struct Names {
    tables: OnceLock<Vec<Table>>,
    /// Directories, with the directory that has an entry for them; and with what their `..` says.
    pairs: Mutex<(Vec<Pair>, Vec<Pair>)>,
    /// Directories of which not all names are known.
    incomplete: Mutex<BTreeSet<Ino>>,
}

/// File type of an entry that names an inode of this kind (`xfs_mode_to_ftype`).
pub const fn ftype_of(kind: Kind) -> u8 {
    match kind {
        Kind::Unknown => 0,
        Kind::Regular => 1,
        Kind::Directory => 2,
        Kind::Char => 3,
        Kind::Block => 4,
        Kind::Fifo => 5,
        Kind::Socket => 6,
        Kind::Symlink => 7,
    }
}

impl Names {
    /// Makes room, once the inode btrees are known.
    pub fn begin(&self, groups: &[Group], parents: bool) {
        let tables = groups.iter().map(|group| {
            let n = group.chunks.len().saturating_mul(64);
            Table {
                kinds: (0..n).map(|_| AtomicU8::new(0)).collect(),
                balance: (0..if parents { n } else { 0 }).map(|_| AtomicU64::new(0)).collect(),
            }
        });
        // OK: called once per run; a second call would change nothing.
        let _ = self.tables.set(tables.collect());
    }

    /// Table and place of an inode, where the inode btree says that it has space.
    fn find(&self, slot: Option<InodeSlot>) -> Option<(&Table, usize)> {
        let slot = slot.filter(|slot| slot.has_space)?;
        Some((self.tables.get()?.get(slot.group)?, slot.index))
    }

    /// Notes what an inode is, or that it is damaged.
    pub fn note(&self, slot: Option<InodeSlot>, inode: Inode<'_>, sound: bool) {
        let Some((table, index)) = self.find(slot) else { return };
        let what = if !sound || (inode.mode() != 0 && inode.kind() == Kind::Unknown) {
            DAMAGED
        } else if inode.mode() == 0 {
            0
        } else {
            let unlinked = if inode.nlink() == 0 { UNLINKED } else { 0 };
            let metadata = if inode.metatype().is_some() { METADATA } else { 0 };
            ftype_of(inode.kind()) | unlinked | metadata
        };
        if let Some(kind) = table.kinds.get(index) {
            kind.store(what, Ordering::Relaxed);
        }
    }

    /// Notes that the extent maps of an inode were wholly seen.
    pub fn mapped(&self, slot: Option<InodeSlot>) {
        if let Some((table, index)) = self.find(slot)
            && let Some(kind) = table.kinds.get(index)
        {
            kind.fetch_or(MAPPED, Ordering::Relaxed);
        }
    }

    fn known(&self, ctx: &Ctx<'_>, ino: Ino) -> u8 {
        let kind = self.find(ctx.slot(ino)).and_then(|(table, index)| table.kinds.get(index));
        kind.map_or(0, |kind| kind.load(Ordering::Relaxed))
    }

    /// Were the extent maps of an inode wholly seen?
    pub fn is_mapped(&self, ctx: &Ctx<'_>, ino: Ino) -> bool {
        self.known(ctx, ino) & MAPPED != 0
    }

    /// Was the inode seen, in use and sound?
    pub fn is_noted(&self, ctx: &Ctx<'_>, ino: Ino) -> bool {
        let known = self.known(ctx, ino);
        known & TYPE != 0 && known & DAMAGED == 0
    }

    /// Notes that not all parent pointers of an inode are known.
    pub fn parents_unknown(&self, ctx: &Ctx<'_>, ino: Ino) {
        if let Some((table, index)) = self.find(ctx.slot(ino))
            && let Some(kind) = table.kinds.get(index)
        {
            kind.fetch_or(PARENTS_UNKNOWN, Ordering::Relaxed);
        }
    }

    /// Notes that not all names of a directory are known.
    pub fn names_unknown(&self, ino: Ino) {
        self.incomplete.lock().unwrap_or_else(PoisonError::into_inner).insert(ino);
    }

    /// The directories of which not all names are known.
    pub fn incomplete(&self) -> BTreeSet<Ino> {
        self.incomplete.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a number leads to.
    pub fn target(&self, ctx: &Ctx<'_>, ino: Ino) -> Target {
        self.target_at(ctx, ino, ctx.slot(ino))
    }

    /// The same, for a caller that has the inode's slot.
    pub fn target_at(&self, ctx: &Ctx<'_>, ino: Ino, slot: Option<InodeSlot>) -> Target {
        let Some((table, index)) = self.find(slot) else {
            let Some((ag, _)) = ctx.geometry().split_inode(ino) else { return Target::Absent };
            return if is_witness(ctx, ag) { Target::Absent } else { Target::Unknown };
        };
        let kind = table.kinds.get(index).map_or(0, |kind| kind.load(Ordering::Relaxed));
        match kind & !(PARENTS_UNKNOWN | MAPPED) {
            0 if slot.is_some_and(|slot| slot.in_use) => Target::Damaged,
            0 if ctx.geometry().split_inode(ino).is_some_and(|(ag, _)| is_witness(ctx, ag)) => Target::Free,
            0 => Target::Unknown,
            what if what & DAMAGED != 0 => Target::Damaged,
            what => {
                Target::Inode { ftype: what & TYPE, metadata: what & METADATA != 0, unlinked: what & UNLINKED != 0 }
            }
        }
    }

    /// An entry that names an inode, or its parent pointer: the two cancel out.
    pub fn balance(&self, slot: Option<InodeSlot>, number: u64, pointer: bool) {
        if let Some((table, index)) = self.find(slot)
            && let Some(balance) = table.balance.get(index)
        {
            let number = if pointer { number.wrapping_neg() } else { number };
            balance.fetch_add(number, Ordering::Relaxed);
        }
    }

    /// Takes over what a thread gathered: directories with the directory that names them, and with their `..`.
    pub fn gather(&self, entries: &mut Vec<Pair>, dotdots: &mut Vec<Pair>) {
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        pairs.0.append(entries);
        pairs.1.append(dotdots);
    }

    /// What was gathered, sorted.
    pub fn take_pairs(&self) -> (Vec<Pair>, Vec<Pair>) {
        let mut pairs = std::mem::take(&mut *self.pairs.lock().unwrap_or_else(PoisonError::into_inner));
        pairs.0.sort_unstable();
        pairs.1.sort_unstable();
        pairs
    }

    /// The inodes whose places in the tables are so.
    fn numbers(&self, ctx: &Ctx<'_>, is_so: impl Fn(&Table, usize) -> bool) -> Vec<Ino> {
        let mut found = Vec::new();
        let tables = self.tables.get().map_or(&[][..], Vec::as_slice);
        for (group, table) in ctx.groups().iter().zip(tables) {
            for index in (0..table.kinds.len()).filter(|&index| is_so(table, index)) {
                let chunk = group.chunks.get(index / 64);
                let within = u32::try_from(index % 64).unwrap_or(0);
                let agino = chunk.and_then(|chunk| chunk.startino.0.checked_add(within)).map(AgIno);
                found.extend(agino.and_then(|agino| ctx.geometry().join_inode(group.ag, agino)));
            }
        }
        found
    }

    /// The directories.
    pub fn directories(&self, ctx: &Ctx<'_>) -> Vec<Ino> {
        self.numbers(ctx, |table, index| {
            let kind = table.kinds.get(index).map_or(0, |kind| kind.load(Ordering::Relaxed));
            kind & DAMAGED == 0 && kind & TYPE == 2
        })
    }

    /// The inodes whose parent pointers are not the entries that name them, damaged ones left out.
    pub fn unbalanced(&self, ctx: &Ctx<'_>) -> Vec<Ino> {
        self.numbers(ctx, |table, index| {
            let kind = table.kinds.get(index).map_or(0, |kind| kind.load(Ordering::Relaxed));
            let off = table.balance.get(index).is_some_and(|balance| balance.load(Ordering::Relaxed) != 0);
            off && kind != 0 && kind & (DAMAGED | PARENTS_UNKNOWN) == 0
        })
    }
}

/// May the inode btree of an AG be believed?
fn is_witness(ctx: &Ctx<'_>, ag: AgNumber) -> bool {
    ctx.group(ag).is_some_and(|group| group.inobt.is_witness())
}

/// A number that stands for an entry: parent, its generation, name.
pub fn entry_number(parent: Ino, generation: u32, name: &[u8]) -> u64 {
    let start = mix(parent.0 ^ u64::from(generation) << 32);
    // FNV-1a over the name, then mixed: sums of it must not cancel out by chance.
    mix(name.iter().fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)))
}

/// Spreads the bits of a number (splitmix64).
pub const fn mix(number: u64) -> u64 {
    let n = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}
