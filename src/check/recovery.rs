//! With a dirty log: what of that which is found wrong may recovery put right, and what is damage nonetheless?

use super::finding::{Class, Finding, Object};
use super::{copies, counters};
use crate::error::Place;
use crate::format::{Type, Uuid, bits};
use crate::geometry::Geometry;
use crate::units::{ByteOffset, Device, Ino};
use crate::volume::{AgHeader, Volume};
use crate::walk::log::{Changes, Recovery, Unknown};

/// What is known of the journal.
#[derive(Clone, Debug, Default)]
pub struct LogFacts {
    /// Do records wait for recovery? `None` where that is not known.
    pub dirty: Option<bool>,
    /// Cycle and block of its head, as an LSN: no metadata may carry a greater one. `None` where that is not known.
    pub current: Option<u64>,
    /// Is that so since it could not be read? Then it may be dirty.
    pub unread: bool,
    /// What recovery of a dirty log would do, or why that is not known.
    pub recovery: Option<Result<Recovery, Unknown>>,
    /// What recovery would write over; `None` where that is not known.
    pub changes: Option<Changes>,
}

/// Fields of the superblock that a mounted file system changes through the log, and then in the copies.
const ONLINE: &[&str] = &["dblocks", "agcount", "rblocks", "rextents", "rextslog", "rbmblocks", "rgcount", "fname"];

/// What verifiers of the kernel find in a block alone, whatever leads to it.
const ALONE: &[&str] = &[
    "btree-too-many-records",
    "dirdata-bad-unused-space",
    "dirdata-adjacent-unused-space",
    "dirdata-bad-namelen",
    "dirdata-bad-tag",
    "dirdata-bad-bestfree",
    "dirblock-bad-count",
    "dirleaf-bad-count",
    "dirindex-bad-stale",
    "dirfree-bad-nvalid",
    "dirfree-bad-nused",
    "attrleaf-bad-count",
    "attrleaf-bad-firstused",
    "attrleaf-bad-freemap",
    "attrleaf-bad-nameidx",
];

impl LogFacts {
    /// With a dirty log: may recovery put right what the finding says?
    pub fn explains(&self, volume: &Volume, finding: &Finding) -> bool {
        let judged = !matches!(finding.rule.class, Class::Incomplete);
        (self.dirty == Some(true) || self.unread) && judged && !self.stands(volume, finding)
    }

    /// Is the primary superblock one of the changes that wait?
    pub fn superblock_waits(&self) -> bool {
        self.changes.as_ref().is_some_and(|changes| changes.touch(Device::Data, ByteOffset(0), 512))
    }

    /// With a dirty log: is this damage nonetheless? The kernel tests a block before it writes it, so that what fails its
    /// own test was damaged on disk, and stays so where no item in the log names it. What two structures say of each other
    /// tells nothing: one may be as it was long before the oldest item, if the log has it anew.
    ///
    /// What leads to a block may be as old: the block was freed since, and holds data of a file or parts of both.
    fn stands(&self, volume: &Volume, finding: &Finding) -> bool {
        let (rule, place, geometry) = (finding.rule, &finding.place, volume.geometry());
        let sb_waits = || self.changes.is_none() || self.superblock_waits();
        let field = place.field.unwrap_or(rule.field);
        let against = copies::AGAINST.iter().any(|against| against.id == rule.id);
        match rule.structure {
            // Which devices belong together does not wait in a log.
            "sb" if against => return !(ONLINE.contains(&field) && sb_waits()),
            "rtsb" => return !(ONLINE.contains(&field) && sb_waits()),
            "sb" => return !counters::RAISED.iter().any(|counter| counter.id == rule.id),
            "log" | "rtdev" => return true,
            _ => {}
        }
        let fits = match rule.structure {
            "agf" | "agi" | "agfl" => true,
            "inode" => !["inode-bad-magic", "inode-bad-number", "inode-bad-uuid"].contains(&rule.id),
            _ => rule.id.starts_with("dirsf-") || rule.id.starts_with("attrsf-"),
        };
        let tested = ["_verify", "xfs_validate_ag_length"].iter().any(|by| rule.source.contains(by));
        let verifier = fits && rule.class == Class::Corrupt && tested;
        let (crc, alone) = (rule.id.ends_with("-bad-crc"), ALONE.contains(&rule.id));
        let Some(changes) = self.changes.as_ref().filter(|_| verifier || crc || alone) else { return false };
        if changes.touch(place.device, place.byte, place.length) {
            return false;
        }
        match finding.object {
            // Growing makes the last AG longer.
            Object::Ag(ag, _) if field == "length" => ag.0.saturating_add(1) < geometry.ag_count || !sb_waits(),
            Object::Ag(_, Type::Agf | Type::Agi | Type::Agfl) => true,
            // The checksum was right, so that it is a block as the kernel wrote it, if an older one.
            _ if alone => volume.context().has_crc(),
            Object::Inode(ino) if verifier => {
                let known = rule.id != "inode-bad-version" || is_of(volume, place);
                known && !changes.touch_inode(geometry, ino)
            }
            // Of a block as large as several, a part may have been written.
            Object::Inode(ino) if place.length > geometry.block_size() => {
                let free = changes.touch_inode(geometry, ino) || self.may_be_freed(geometry, ino);
                !free && is_of(volume, place)
            }
            _ => is_of(volume, place),
        }
    }

    /// May the inode be one of a chunk that was freed?
    fn may_be_freed(&self, geometry: &Geometry, ino: Ino) -> bool {
        let agi = geometry.split_inode(ino).and_then(|(ag, _)| geometry.ag_header(ag, AgHeader::Agi.sector()));
        let touched = |changes: &Changes| agi.is_none_or(|agi| changes.touch(Device::Data, agi, 512));
        self.changes.as_ref().is_none_or(touched)
    }
}

/// Does what lies there say that it is metadata of this file system, and not the data of a file? Without checksums
/// metadata does not say whose it is.
fn is_of(volume: &Volume, place: &Place) -> bool {
    if !volume.context().has_crc() {
        return true;
    }
    // The uuid begins at byte 16 (symlink) to 160 (inode).
    let length = u32::try_from(place.length).unwrap_or(u32::MAX).min(176);
    let right = volume.superblock().metadata_uuid();
    volume
        .read(place.device, place.byte, length, "uuid")
        .is_ok_and(|block| (16..=160).step_by(8).any(|at| bits::array(&block.bytes, at).map(Uuid) == Some(right)))
}
