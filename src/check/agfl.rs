//! Rules about the free list of an AG. `xfs_agfl_verify` (xfs_alloc.c), `xchk_agfl` (scrub/agheader.c), `scan_freelist`
//! (xfs_repair).

use super::context::Ctx;
use super::finding::Mismatch;
use super::group::Group;
use super::owners::{Local, Owner};
use super::{raised, rules};
use crate::format::agf::Agf;
use crate::format::agfl::{self, Agfl, slot, slots};
use crate::format::checksum::CrcState;
use crate::format::on_disk::Uuid;
use crate::units::AgNumber;
use crate::volume::AgHeader;

/// The header of a V5 free list and what it must agree with.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its contents.
    pub agfl: Agfl,
    /// The AG it lies in.
    pub ag: AgNumber,
    /// Identity that metadata must carry.
    pub uuid: Uuid,
    /// State of the checksum.
    pub crc: CrcState,
}

rules! { structure "agfl", subject Subject, fields Agfl;
    /// There is no free list: the sector was overwritten. xfs_repair makes a new one; its blocks are free space.
    "agfl-bad-magic" corrupt magicnum, "no AGFL here",
        source "xfs_alloc.c:xfs_agfl_verify", since "3.10",
        |s| Mismatch::unless(s.agfl.magicnum == agfl::MAGIC, format!("{:#x}", s.agfl.magicnum), "0x5841464c");
    /// Bytes of the sector changed after it was written. The kernel refuses every allocation in this AG.
    "agfl-bad-crc" corrupt crc, "checksum does not match",
        source "xfs_alloc.c:xfs_agfl_read_verify; repair/scan.c:scan_freelist", since "3.10",
        |s| match s.crc {
            CrcState::Bad { computed } => Some(Mismatch::new(s.agfl.crc, crate::format::Crc(computed))),
            _ => None,
        };
    /// The list belongs to another file system, or to an earlier one on this device.
    "agfl-bad-uuid" corrupt uuid, "list of another file system",
        source "xfs_alloc.c:xfs_agfl_verify", since "3.10",
        |s| Mismatch::unless(s.agfl.uuid == s.uuid, s.agfl.uuid, s.uuid);
    /// The list says that it is that of another AG.
    "agfl-bad-seqno" corrupt seqno, "list of another AG",
        source "xfs_alloc.c:xfs_agfl_verify", since "3.10",
        |s| Mismatch::unless(s.agfl.seqno == s.ag, s.agfl.seqno, s.ag);
}

raised! { RAISED, structure "agfl";
    /// A slot in use must hold a block of the AG behind its headers. The kernel would build a btree block there.
    OUTSIDE: "agfl-block-outside" corrupt "bno", "block on the free list lies outside the AG",
        source "xfs_alloc.c:xfs_agfl_verify; repair/scan.c:scan_agfl", since "3.10";
    /// Slots that are not in use hold null, or a block that was there once. The kernel refuses a list with anything else in
    /// it, in use or not.
    STALE: "agfl-unused-slot-outside" corrupt "bno", "unused slot holds no block of the AG",
        source "xfs_alloc.c:xfs_agfl_verify", since "3.10";
    /// The free list wraps around, and was written by a 64-bit kernel before 4.5 (RHEL 7, too), which had one slot less. All its
    /// blocks are there, and nothing is damaged. Such a kernel goes on with it. Since 4.17 (4.4.155, 4.9.337, 4.14.105) kernels
    /// mount it, but at the first allocation in this AG they empty the list ("Reset corrupted AGFL ... blocks leaked"): its
    /// blocks are lost as free space until xfs_repair has run, which writes the list anew and loses nothing. Scrub and
    /// xfs_repair -n call the count of the list wrong.
    OLD_LAYOUT: "agfl-old-layout" preen "bno", "free list in the layout of old 64-bit kernels, which have one slot less",
        source "xfs_alloc.c:xfs_agfl_needs_reset; 96f859d52bcb (4.5)", since "4.17";
}

/// Was the free list written with one slot less than there are? It wraps around, its length fits such a layout alone, and the
/// last slot holds no block.
pub fn has_old_layout(ctx: &Ctx<'_>, group: &Group, agf: &Agf, list: &[u8]) -> bool {
    let context = ctx.context();
    let Some(last) = slots(context).checked_sub(1) else { return false };
    let inside = |block: u32| (super::btree::header_blocks(ctx)..group.length).contains(&block);
    context.has_crc()
        && (1..=last).contains(&agf.flcount)
        && agf.fllast < agf.flfirst
        && agf.flfirst < last
        && super::agf::free_list_length(agf, last) == agf.flcount
        && slot(context, list, last).is_some_and(|block| !inside(block.0))
}

/// Reads and checks the free list; its blocks go to `owners`. Gives the number of blocks, where the list is believed.
pub fn check(ctx: &Ctx<'_>, group: &Group, bytes: &[u8], owners: &mut Local<'_>) -> Option<u32> {
    let (context, ag) = (ctx.context(), group.ag);
    let spot = super::group::header_spot(ctx, ag, AgHeader::Agfl);
    let mut believed = true;
    if context.has_crc() {
        let agfl = crate::format::Structure::decode(bytes)?;
        let crc = crate::format::checksum::verify(bytes, agfl::CRC_OFFSET);
        let subject = Subject { agfl, ag, uuid: ctx.volume().superblock().metadata_uuid(), crc };
        believed = super::group::apply_until_unreadable(RULES, INFOS, &subject, |rule, mismatch| {
            ctx.raise(rule, &spot, mismatch.found, mismatch.expected);
        });
        if believed {
            ctx.lsn(subject.agfl.lsn, || spot.clone());
        }
    }
    let agf = group.agf.as_ref()?;
    let old = has_old_layout(ctx, group, agf, bytes);
    let slots = slots(context).saturating_sub(u32::from(old));
    let doubted = group.reported.iter().any(|field| field.starts_with("fl")) || !group.agf_believed;
    let usable = agf.flfirst < slots && agf.fllast < slots && agf.flcount <= slots && !doubted;
    if !usable || !believed {
        return None;
    }
    if old {
        let found = format!("slots {} to {}, flcount {}", agf.flfirst, agf.fllast, agf.flcount);
        let expected = format!("{} slots in between", agf.flcount.saturating_add(1));
        ctx.raise(OLD_LAYOUT, &spot, found, expected);
    }
    let first = super::btree::header_blocks(ctx);
    let in_use = slots_in_use(agf, slots);
    let (mut outside, mut stale) = (Vec::new(), Vec::new());
    for i in 0..slots {
        let Some(block) = slot(context, bytes, i) else { break };
        let position =
            i.checked_sub(agf.flfirst).unwrap_or_else(|| slots.saturating_sub(agf.flfirst).saturating_add(i));
        if position >= in_use {
            if context.has_crc() && !block.is_null() && block.0 >= ctx.geometry().ag_blocks {
                stale.push((i, block));
            }
        } else if (first..group.length).contains(&block.0) {
            owners.blocks(ag, block, 1, Owner::FREE_LIST);
        } else {
            outside.push((i, block));
        }
    }
    let bounds = [
        format!("{first} to {}", group.length.saturating_sub(1)),
        format!("null, or at most {}", ctx.geometry().ag_blocks.saturating_sub(1)),
    ];
    for ((rule, list), bound) in [(OUTSIDE, &outside), (STALE, &stale)].into_iter().zip(bounds) {
        if let [(i, block), more @ ..] = list.as_slice() {
            let more = if more.is_empty() { String::new() } else { format!(", and {} more slots", more.len()) };
            ctx.raise(rule, &spot.part(format_args!("bno[{i}]")), format_args!("{block}{more}"), bound);
        }
    }
    outside.is_empty().then_some(in_use)
}

/// Slots from flfirst to fllast; none where flcount is 0.
fn slots_in_use(agf: &Agf, slots: u32) -> u32 {
    if agf.flcount == 0 { 0 } else { super::agf::free_list_length(agf, slots).min(slots) }
}
