//! Owners of blocks: records of the reverse mapping btree, and against what owners were found.
//! `xfs_rmap_check_irec` (xfs_rmap.c), `xchk_rmapbt_rec` (scrub/rmap.c), `scan_rmapbt`, `rmaps_verify_btree` (xfs_repair).

use super::btree::{Scanned, of_ag, scan};
use super::context::Ctx;
use super::finding::Mismatch;
use super::group::Group;
use super::owners::{Entry, Local, Owner, Within};
use super::{first_broken, raised, rules};
use crate::format::agf::Agf;
use crate::format::rmapbt::{self, Mapping, RmapRec, owner};
use crate::units::Ino;

/// A record and what it must fit.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The record.
    pub mapping: Mapping,
    /// Blocks of the AG.
    pub length: u32,
    /// First block behind the headers.
    pub first: u32,
    /// Is the owner an inode that can exist, or one of the special owners?
    pub owner_exists: bool,
}

impl Subject {
    fn is_special(&self) -> bool {
        self.mapping.owner >> 63 != 0
    }
}

rules! { structure "rmapbt", subject Subject, fields RmapRec;
    /// A mapping lies within the AG and is at least a block long. Only the headers begin before the block behind them.
    "rmapbt-extent-outside" corrupt startblock, "mapping is empty or lies outside the AG",
        source "xfs_rmap.c:xfs_rmap_check_irec; repair/scan.c:scan_rmapbt", since "4.17",
        |s| {
            let (start, length) = (s.mapping.startblock, s.mapping.blockcount);
            let end = start.get().saturating_add(length.get());
            let headers = s.mapping.owner == owner::FS && start.0 == 0 && length.0 == s.first;
            let right = headers || start.0 >= s.first && length.0 > 0 && end <= u64::from(s.length);
            Mismatch::unless(right, format_args!("[{start},{length}]"), format_args!("blocks {} to {}", s.first, s.length.saturating_sub(1)))
        };
    /// The owner is an inode that can exist, or one of the special owners.
    "rmapbt-bad-owner" corrupt owner, "owner cannot exist",
        source "xfs_rmap.c:xfs_rmap_check_irec; repair/scan.c:scan_rmapbt", since "4.17",
        |s| Mismatch::unless(s.owner_exists, s.mapping.owner.cast_signed(), "an inode, or -3 to -9");
    /// Owners that are no inodes have neither offset nor flags; blocks of extent maps have no offset and are not
    /// unwritten; attributes are never unwritten; the bits between offset and flags are zero.
    "rmapbt-bad-offset" corrupt offset, "offset and flags do not fit the owner",
        source "xfs_rmap.c:xfs_rmap_check_irec, xfs_rmap_irec_offset_unpack; repair/scan.c:scan_rmapbt", since "4.17",
        |s| {
            let offset = s.mapping.offset;
            let special = s.is_special() && offset.0 != 0;
            let tree = offset.bmbt_block() && (offset.unwritten() || offset.blocks() != 0);
            let attr = offset.attr_fork() && offset.unwritten();
            let wrong = special || tree || attr || offset.unused() != 0;
            Mismatch::unless(!wrong, format_args!("{:#x}, owner {}", offset.0, s.mapping.owner.cast_signed()), "flags that fit")
        };
}

raised! { RAISED, structure "rmapbt", fields RmapRec;
    /// Mappings of one owner that follow each other on disk and in the file are one record.
    UNMERGED: "rmapbt-mappings-touch" corrupt startblock, "mappings touch and should be one",
        source "scrub/rmap.c:xchk_rmapbt_check_mergeable; repair/scan.c:scan_rmapbt", since "scrub";
    /// Without shared extents no block has two owners.
    OVERLAP: "rmapbt-mappings-overlap" corrupt startblock, "two owners of a block that cannot be shared",
        source "scrub/rmap.c:xchk_rmapbt_check_overlapping; repair/scan.c:scan_rmapbt", since "scrub";
    /// The record names an owner that does not own these blocks. A scrub or repair that trusts the btree would go wrong.
    NOT_OWNED: "rmapbt-not-owned" xcorrupt owner, "mapping that no owner confirms",
        source "scrub/rmap.c:xchk_rmapbt_check_bitmaps; repair/rmap.c:rmaps_verify_btree", since "scrub";
    /// An owner's blocks are not in the btree, or with other length, offset or flags.
    MISSING: "rmapbt-owner-missing" xcorrupt owner, "blocks of an owner are not in the btree",
        source "scrub/bmap.c:xchk_bmap_xref_rmap; repair/rmap.c:rmaps_verify_btree", since "scrub";
}

/// The reverse mapping btree of an AG: its records, in order. Its blocks go to `owners`.
pub fn check(ctx: &Ctx<'_>, group: &Group, agf: &Agf, owners: &mut Local<'_>) -> (Scanned, Vec<Entry>) {
    let features = ctx.context().features;
    let first = super::btree::header_blocks(ctx);
    let tree = of_ag(&rmapbt::SHAPE, group.ag, agf.rmap_root, agf.rmap_level, Owner::RMAPBT);
    let mut all: Vec<Entry> = Vec::new();
    let scanned = scan(ctx, &tree, owners, &mut |leaf| {
        if !leaf.believed {
            return true;
        }
        for (i, record) in leaf.records().enumerate() {
            let Some(mapping) = Mapping::at(record, 0) else { continue };
            let special = (owner::COW..=owner::FS).contains(&mapping.owner);
            let owner_exists = special || ctx.geometry().split_inode(Ino(mapping.owner)).is_some();
            let subject = Subject { mapping, length: group.length, first, owner_exists };
            if let Some((rule, mismatch)) = first_broken(RULES, INFOS, &subject) {
                ctx.raise(rule, &leaf.spot(i), mismatch.found, mismatch.expected);
                return false;
            }
            let entry = Entry {
                start: mapping.startblock.0,
                blocks: mapping.blockcount.0,
                owner: Owner(mapping.owner),
                within: Within(mapping.offset.0),
            };
            if let Some(last) = all.last() {
                let rule = if last.joins(&entry) {
                    Some(UNMERGED)
                } else if !features.has_reflink() && u64::from(entry.start) < last.end() {
                    Some(OVERLAP)
                } else {
                    None
                };
                if let Some(rule) = rule {
                    ctx.raise(rule, &leaf.spot(i), text(&entry), format_args!("behind {}", text(last)));
                    return false;
                }
            }
            all.push(entry);
        }
        true
    });
    (scanned, all)
}

/// Text of a mapping.
pub fn text(entry: &Entry) -> String {
    let Entry { start, blocks, owner, within } = entry;
    let special = owner.0 >> 63 != 0;
    let holder = if special {
        format!("owner {}", owner.rmap().unwrap_or(owner.0).cast_signed())
    } else {
        format!("inode {}", owner.0)
    };
    let mut out = format!("[{start},{blocks}] of {holder}");
    if !special {
        let names = [(Within::ATTR, " attributes"), (Within::TREE, " extent map"), (Within::UNWRITTEN, " unwritten")];
        if within.0 & Within::TREE == 0 {
            out.push_str(&format!(" at {}", within.offset()));
        }
        names.iter().filter(|(bit, _)| within.0 & bit != 0).for_each(|(_, name)| out.push_str(name));
    }
    out
}
