//! AG headers, and the roots of the btrees that they name.

use super::btree::Root;
use super::{Walk, corrupt};
use crate::error::{Error, Result};
use crate::format::agf::{self, Agf};
use crate::format::agi::{self, Agi};
use crate::format::checksum::{self, CrcState};
use crate::format::{Structure, bits};
use crate::units::AgNumber;
use crate::volume::{AgHeader, Block};

/// AGs to walk: those of the superblock, as far as the device goes. A count that is too large costs nothing.
pub fn numbers(walk: &Walk<'_>) -> impl Iterator<Item = AgNumber> + Clone + use<> {
    let geometry = walk.geometry();
    let bytes = u64::from(geometry.ag_blocks).saturating_mul(geometry.block_size());
    let there = walk.volume().devices().data.len().checked_next_multiple_of(bytes.max(1)).unwrap_or(u64::MAX);
    let there = u32::try_from(there.checked_div(bytes).unwrap_or(0)).unwrap_or(u32::MAX);
    (0..geometry.ag_count.min(there)).map(AgNumber)
}

/// The magic must be right; a wrong checksum is reported, and the header used all the same.
fn accept(walk: &Walk<'_>, block: &Block, magic: u32, crc: usize, report: &mut dyn FnMut(Error)) -> Result<()> {
    let found = bits::be32(&block.bytes, 0).unwrap_or(0);
    if found != magic {
        let (found, right) = (format!("{found:#x}"), format!("{magic:#x}"));
        return Err(corrupt(block.place.field("magicnum"), "no such header there", found, right));
    }
    if walk.context().has_crc()
        && let CrcState::Bad { computed } = checksum::verify(&block.bytes, crc)
    {
        let stored = bits::array(&block.bytes, crc).map_or(0, u32::from_le_bytes);
        let (stored, computed) = (crate::format::Crc(stored).to_string(), crate::format::Crc(computed).to_string());
        report(corrupt(block.place.field("crc"), "the checksum is wrong", stored, computed));
    }
    Ok(())
}

fn cut(block: &Block) -> Error {
    corrupt(block.place.clone(), "the sector is too short for the header", block.bytes.len(), "512 bytes or more")
}

/// The free space header of an AG. A wrong checksum goes to `report`.
///
/// # Errors
/// [`Error::Io`], and [`Error::Corrupt`] where there is no AGF.
pub fn agf(walk: &Walk<'_>, ag: AgNumber, report: &mut dyn FnMut(Error)) -> Result<Agf> {
    walk.step(1)?;
    let block = walk.volume().ag_header(ag, AgHeader::Agf)?;
    accept(walk, &block, agf::MAGIC, agf::CRC_OFFSET, report)?;
    Agf::decode(&block.bytes).ok_or_else(|| cut(&block))
}

/// The inode header of an AG. A wrong checksum goes to `report`.
///
/// # Errors
/// [`Error::Io`], and [`Error::Corrupt`] where there is no AGI.
pub fn agi(walk: &Walk<'_>, ag: AgNumber, report: &mut dyn FnMut(Error)) -> Result<Agi> {
    walk.step(1)?;
    let block = walk.volume().ag_header(ag, AgHeader::Agi)?;
    accept(walk, &block, agi::MAGIC, agi::CRC_OFFSET, report)?;
    Agi::decode(&block.bytes).ok_or_else(|| cut(&block))
}

/// Root of the inode btree.
pub fn inobt(ag: AgNumber, agi: &Agi) -> Root<'static> {
    Root::Ag { ag, block: agi.root, levels: agi.level }
}

/// Root of the free inode btree; only with that feature.
pub fn finobt(ag: AgNumber, agi: &Agi) -> Root<'static> {
    Root::Ag { ag, block: agi.free_root, levels: agi.free_level }
}

/// Root of the free space btree by block.
pub fn bnobt(ag: AgNumber, agf: &Agf) -> Root<'static> {
    Root::Ag { ag, block: agf.bno_root, levels: agf.bno_level }
}

/// Root of the free space btree by size.
pub fn cntbt(ag: AgNumber, agf: &Agf) -> Root<'static> {
    Root::Ag { ag, block: agf.cnt_root, levels: agf.cnt_level }
}

/// Root of the reverse mapping btree; only with that feature.
pub fn rmapbt(ag: AgNumber, agf: &Agf) -> Root<'static> {
    Root::Ag { ag, block: agf.rmap_root, levels: agf.rmap_level }
}

/// Root of the refcount btree; only with feature reflink.
pub fn refcountbt(ag: AgNumber, agf: &Agf) -> Root<'static> {
    Root::Ag { ag, block: agf.refcount_root, levels: agf.refcount_level }
}
