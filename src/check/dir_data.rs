//! Directory blocks that hold entries: how entries and free space fill the block, and the three largest free spaces.
//! `__xfs_dir3_data_check` (xfs_dir2_data.c), `xchk_directory_data_bestfree` (scrub/dir.c); `process_dir2_data`
//! (xfs_repair).

use super::context::{Ctx, Spot};
use super::raised;
use crate::format::bits;
use crate::format::dir_data::{FREE_TAG, entry_size, header_size};
use crate::units::Ino;

raised! { RAISED, structure "dir.data";
    /// Unused space of a directory block: it tells its length, and where it begins, and no two lie side by side. What
    /// follows a wrong length is read as entries.
    BAD_UNUSED: "dirdata-bad-unused-space" corrupt "length", "unused space does not fit into the block",
        source "xfs_dir2_data.c:__xfs_dir3_data_check; repair/dir2.c:process_dir2_data", since "3.10";
    /// Two unused spaces lie side by side: they should be one.
    ADJACENT: "dirdata-adjacent-unused-space" corrupt "freetag", "two unused spaces side by side",
        source "xfs_dir2_data.c:__xfs_dir3_data_check", since "3.10";
    /// A data block without entries: kernels free such blocks, and leave one only where there is no space to change the
    /// extents. xfs_repair removes it.
    EMPTY: "dirdata-empty-block" xcorrupt "freetag", "data block without entries",
        source "repair/phase6.c:longform_dir2_entry_check_data", since "none";
    /// An entry does not fit into the block, or has no name. Where the next entry begins is not known, so those behind
    /// it in the block could not be read.
    BAD_LENGTH: "dirdata-bad-namelen" corrupt "namelen", "entry does not fit: those behind it cannot be read",
        source "xfs_dir2_data.c:__xfs_dir3_data_check; repair/dir2.c:process_dir2_data", since "3.10";
    /// Each entry, and each unused space, has its own place within the block as its last two bytes.
    BAD_TAG: "dirdata-bad-tag" corrupt "tag", "entry or unused space says it lies elsewhere",
        source "xfs_dir2_data.c:__xfs_dir3_data_check; repair/dir2.c:process_dir2_data", since "3.10";
    /// The header lists the three largest free spaces, the largest first. Making an entry where the list is wrong
    /// overwrites others.
    BAD_BESTFREE: "dirdata-bad-bestfree" corrupt "bestfree", "not the three largest free spaces",
        source "xfs_dir2_data.c:__xfs_dir3_data_check; scrub/dir.c:xchk_directory_data_bestfree; repair/dir2.c:process_dir2_data",
        since "3.10";
    /// Bytes without a use are zero. Nothing depends on them.
    BAD_PAD: "dirdata-bad-pad" preen "pad", "unused bytes are not zero",
        source "scrub/dir.c:xchk_directory_data_bestfree", since "scrub";
}

/// An entry of a block.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Byte within the block.
    pub offset: usize,
    /// Inode it names.
    pub ino: Ino,
    /// Name.
    pub name: &'a [u8],
    /// File type, where there is one.
    pub ftype: Option<u8>,
}

/// The entry at a byte of a block, whatever its tag says.
pub fn entry_at<'a>(ctx: &Ctx<'_>, bytes: &'a [u8], offset: usize) -> Option<Entry<'a>> {
    let ino = Ino(bits::be64(bytes, offset)?);
    let length = usize::from(*bytes.get(offset.checked_add(8)?)?);
    let name_at = offset.checked_add(9)?;
    let behind = name_at.checked_add(length)?;
    let name = bytes.get(name_at..behind)?;
    let ftype = ctx.context().features.has_ftype().then(|| bytes.get(behind).copied().unwrap_or(0));
    Some(Entry { offset, ino, name, ftype })
}

/// What came of a block.
#[derive(Clone, Copy, Debug)]
pub struct Filled {
    /// Could all entries be read?
    pub complete: bool,
    /// Longest free space, where that is known.
    pub longest: Option<u16>,
}

/// Does something begin at `offset` whose tag says so, or does the area end there?
fn begins(ctx: &Ctx<'_>, bytes: &[u8], offset: usize, end: usize) -> bool {
    if offset == end {
        return true;
    }
    let size = if bits::be16(bytes, offset) == Some(FREE_TAG) {
        bits::be16(bytes, offset.saturating_add(2)).map(usize::from)
    } else {
        bytes.get(offset.saturating_add(8)).map(|&length| entry_size(ctx.context(), length))
    };
    let next =
        size.and_then(|size| offset.checked_add(size)).filter(|&next| next <= end && next >= offset.saturating_add(8));
    next.and_then(|next| bits::be16(bytes, next.saturating_sub(2))).is_some_and(|tag| usize::from(tag) == offset)
}

/// Goes through a block up to byte `end`; `each` gets the entries whose frame holds.
pub fn fill<'a>(
    ctx: &Ctx<'_>,
    bytes: &'a [u8],
    end: usize,
    spot: &dyn Fn() -> Spot,
    each: &mut dyn FnMut(&Entry<'a>),
) -> Filled {
    let context = ctx.context();
    let first = header_size(context);
    let mut offset = first;
    let mut best = Best::of(bytes, if context.has_crc() { 48 } else { 4 });
    let mut free_before = false;
    let mut tags_wrong = false;
    while offset < end {
        let free = bits::be16(bytes, offset) == Some(FREE_TAG);
        let part = || spot().part(format_args!("offset {offset:#x}"));
        let length = if free {
            usize::from(bits::be16(bytes, offset.saturating_add(2)).unwrap_or(0))
        } else {
            let namelen = bytes.get(offset.saturating_add(8)).copied().unwrap_or(0);
            if namelen == 0 { 0 } else { entry_size(context, namelen) }
        };
        let next = offset.saturating_add(length);
        if length < 8 || length % 8 != 0 || next > end {
            if free {
                ctx.raise(BAD_UNUSED, &part(), length, "whole units of 8 bytes within the block");
            } else {
                let namelen = bytes.get(offset.saturating_add(8)).copied().unwrap_or(0);
                ctx.raise(BAD_LENGTH, &part(), namelen, "a name that ends within the block");
            }
            return Filled { complete: false, longest: None };
        }
        let tag = bits::be16(bytes, next.saturating_sub(2)).map_or(0, usize::from);
        if tag != offset {
            // The tag of a later entry: a wrong length swallowed the ones between.
            let swallowed = tag > offset && tag < next && tag.is_multiple_of(8);
            if swallowed || !begins(ctx, bytes, next, end) {
                let rule = if free { BAD_UNUSED } else { BAD_LENGTH };
                let found =
                    if free { length } else { bytes.get(offset.saturating_add(8)).copied().unwrap_or(0).into() };
                ctx.raise(rule, &part(), found, "a length behind which something begins");
                return Filled { complete: false, longest: None };
            }
            tags_wrong = true;
            ctx.raise(BAD_TAG, &part(), format_args!("{tag:#x}"), format_args!("{offset:#x}"));
        }
        if free {
            if free_before {
                ctx.raise(ADJACENT, &part(), "unused space", "an entry");
            }
            best.see(offset, length);
            if offset == first && next == end {
                ctx.raise(EMPTY, &part(), "unused space alone", "an entry");
            }
        } else if let Some(entry) = entry_at(ctx, bytes, offset) {
            each(&entry);
        }
        free_before = free;
        offset = next;
    }
    if let Some(found) = best.wrong()
        && !tags_wrong
    {
        ctx.raise(BAD_BESTFREE, &spot(), found, best.right());
    }
    if context.has_crc() && bits::be32(bytes, 60).unwrap_or(0) != 0 {
        ctx.raise(BAD_PAD, &spot(), format_args!("{:#x}", bits::be32(bytes, 60).unwrap_or(0)), 0);
    }
    Filled { complete: true, longest: Some(best.longest()) }
}

/// Free spaces against those that the header lists.
#[derive(Debug)]
struct Best {
    /// Offset and length, as the header has them.
    listed: [(u16, u16); 3],
    seen: [bool; 3],
    /// The three largest, largest first.
    largest: [(u16, u16); 3],
    /// A free space that is larger than a listed one is not listed.
    missing: bool,
}

impl Best {
    fn of(bytes: &[u8], at: usize) -> Self {
        let word = |i: usize| bits::be16(bytes, at.saturating_add(i)).unwrap_or(0);
        Self {
            listed: [(word(0), word(2)), (word(4), word(6)), (word(8), word(10))],
            seen: [false; 3],
            largest: [(0, 0); 3],
            missing: false,
        }
    }

    fn see(&mut self, offset: usize, length: usize) {
        let (Ok(offset), Ok(length)) = (u16::try_from(offset), u16::try_from(length)) else { return };
        let [a, b, c] = self.largest;
        self.largest = match length {
            n if n > a.1 => [(offset, n), a, b],
            n if n > b.1 => [a, (offset, n), b],
            n if n > c.1 => [a, b, (offset, n)],
            _ => [a, b, c],
        };
        match self.listed.iter().position(|listed| listed.0 == offset) {
            Some(i) => {
                let same = self.listed.get(i).is_some_and(|listed| listed.1 == length);
                if let Some(seen) = self.seen.get_mut(i) {
                    self.missing |= *seen || !same;
                    *seen = true;
                }
            }
            None => {
                let [_, _, third] = self.listed;
                self.missing |= length > third.1;
            }
        }
    }

    fn longest(&self) -> u16 {
        let [first, ..] = self.largest;
        first.1
    }

    fn text(spaces: [(u16, u16); 3]) -> String {
        let [a, b, c] = spaces.map(|(offset, length)| format!("{offset:#x}+{length}"));
        format!("{a} {b} {c}")
    }

    fn wrong(&self) -> Option<String> {
        let [a, b, c] = self.listed;
        let ordered = a.1 >= b.1 && b.1 >= c.1;
        let all =
            self.listed.iter().zip(self.seen).all(|(listed, seen)| if listed.1 == 0 { listed.0 == 0 } else { seen });
        (self.missing || !ordered || !all).then(|| Self::text(self.listed))
    }

    fn right(&self) -> String {
        Self::text(self.largest)
    }
}
