//! Link counts: what every inode says, against the entries that name it.
//!
//! One number for each inode: the entries that were counted, less the links that it says it has. Whoever reads
//! directories calls [`Links::entry`] for every entry, `.` and `..` among them; [`check`] names those that are not 0.
//! `xchk_nlinks_compare_inode` (scrub/nlinks.c); `phase7` (xfs_repair).
//!
//! Memory: 4 bytes for each inode with space.

use super::context::{Ctx, InodeSlot, Spot};
use super::finding::Object;
use super::group::Group;
use super::raised;
use crate::error::Error;
use crate::format::dinode::{DinodeCore, mode};
use crate::format::dinode_view::Kind;
use crate::units::{AgIno, Ino};
use crate::walk::Inode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

raised! { RAISED, structure "inode", fields DinodeCore;
    /// The inode says another number of links than entries name it; directories count `.` and the `..` of those in them.
    /// With too few, deleting a name frees a file that has others; with too many, its space is never freed. xfs_repair
    /// sets the count.
    NLINK: "inode-nlink-mismatch" xcorrupt nlink, "link count is not the number of names",
        source "scrub/nlinks.c:xchk_nlinks_compare_inode; repair/phase7.c:update_inode_nlinks", since "scrub";
    /// The inode is in use, and no entry names it: it cannot be reached. xfs_repair moves it to lost+found.
    ORPHAN: "inode-orphan" xcorrupt nlink, "no name leads to it",
        source "scrub/nlinks.c:xchk_nlinks_compare_inode; repair/phase6.c:check_for_orphaned_inodes", since "scrub";
    /// An inode in use without links stands on a list of its AG until the last program closes it. This one stands on none:
    /// it will never be freed. xfs_repair moves it to lost+found.
    UNLISTED: "inode-unlinked-unlisted" corrupt nlink, "no links, and on no list of unlinked inodes",
        source "scrub/inode.c:xchk_inode_check_unlinked; repair/phase6.c:check_for_orphaned_inodes", since "scrub";
}

/// Entries less links, for the inodes of an AG: 64 numbers for each chunk.
#[derive(Debug)]
struct Table {
    balance: Vec<AtomicU32>,
}

/// Entries less links, for all inodes.
#[derive(Debug, Default)]
pub struct Links {
    tables: OnceLock<Vec<Table>>,
    counted: AtomicBool,
}

impl Links {
    /// Makes room, once the inode btrees are known.
    pub fn begin(&self, groups: &[Group]) {
        let table = |group: &Group| Table {
            balance: (0..group.chunks.len().saturating_mul(64)).map(|_| AtomicU32::new(0)).collect(),
        };
        // OK: called once per run; a second call would change nothing.
        let _ = self.tables.set(groups.iter().map(table).collect());
    }

    fn find(&self, slot: Option<InodeSlot>) -> Option<&AtomicU32> {
        let slot = slot?;
        self.tables.get()?.get(slot.group)?.balance.get(slot.index)
    }

    /// An entry names an inode: `.` and `..` too.
    pub fn entry(&self, slot: Option<InodeSlot>) {
        if !self.counted.load(Ordering::Relaxed) {
            self.counted.store(true, Ordering::Relaxed);
        }
        if let Some(balance) = self.find(slot) {
            balance.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// An inode in use says how many links it has. `named`: the superblock names it, which counts as one.
    pub fn note(&self, slot: Option<InodeSlot>, inode: Inode<'_>, named: bool) {
        let links = inode.nlink().wrapping_sub(u32::from(named));
        if links != 0
            && let Some(balance) = self.find(slot)
        {
            balance.fetch_sub(links, Ordering::Relaxed);
        }
    }
}

/// An inode in use without links: does it stand on a list of its AG?
pub fn unlinked(ctx: &Ctx<'_>, inode: Inode<'_>) {
    if inode.nlink() != 0 {
        return;
    }
    let Some((ag, agino)) = ctx.geometry().split_inode(inode.ino) else { return };
    let lists = ctx.group(ag).and_then(|group| group.unlinked.get());
    if lists.is_some_and(|members| members.binary_search(&agino).is_err()) {
        let spot = Spot { place: inode.place(ctx.volume()), object: Object::Inode(inode.ino) };
        ctx.raise(UNLISTED, &spot, 0, "at least 1, or an entry of a list of unlinked inodes");
    }
}

/// Names the inodes whose link counts are wrong, once all directories were read. `complete`: all entries were counted;
/// where they were not, too few entries mean nothing.
pub fn check(ctx: &Ctx<'_>, complete: bool) {
    let links = &ctx.links;
    if !links.counted.load(Ordering::Relaxed) || ctx.is_partial() {
        return;
    }
    let tables = links.tables.get().map_or(&[][..], Vec::as_slice);
    for (group, table) in ctx.groups().iter().zip(tables) {
        for (chunk, balances) in group.chunks.iter().zip(table.balance.chunks(64)) {
            for (i, balance) in (0u32..).zip(balances) {
                let balance = balance.load(Ordering::Relaxed).cast_signed();
                if balance != 0
                    && (balance > 0 || complete)
                    && chunk.in_use(i)
                    && let Some(agino) = chunk.startino.0.checked_add(i).map(AgIno)
                    && let Some(ino) = ctx.geometry().join_inode(group.ag, agino)
                {
                    compare(ctx, ino, balance);
                }
            }
        }
    }
}

fn compare(ctx: &Ctx<'_>, ino: Ino, balance: i32) {
    // Links that an inode says it has count only where it was seen when inodes were gone over.
    if ctx.is_damaged(ino) || !ctx.names.is_noted(ctx, ino) {
        return;
    }
    let block = match ctx.walk.inode(ino) {
        Ok(block) => block,
        // What is no inode was named when its chunk was looked at.
        Err(Error::Corrupt { .. }) => return,
        Err(error) => return ctx.unreadable(&error, Object::Inode(ino)),
    };
    let inode = block.inode();
    if inode.mode() == 0 {
        return;
    }
    let counted = inode.nlink().wrapping_add_signed(balance);
    let spot = Spot { place: block.place().clone(), object: Object::Inode(ino) };
    // Copies of the superblock do not name the inodes of the realtime section and of quotas, which nobody else does.
    let unnamed = ctx.volume().superblock().rbmino.is_null() && inode.mode() == mode::REGULAR;
    if counted == 0 && unnamed {
        return;
    }
    // A directory without a name still has its own dot.
    if counted == 0 && inode.kind() != Kind::Directory {
        ctx.raise(ORPHAN, &spot, format_args!("{} links", inode.nlink()), "a name");
    } else {
        ctx.raise(NLINK, &spot, inode.nlink(), counted);
    }
}
