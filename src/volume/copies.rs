//! Copies of the superblock: one at the start of every AG. Where AGs begin is what the lost primary would have
//! told, so: first the places that mkfs.xfs would choose, then what AG headers tell, then an ascending scan.
//!
//! A copy counts only if its checksum holds (V5), arithmetic works with it, and it lies at n × agblocks × blocksize:
//! images can be nested in files, and their superblocks lie anywhere.

use super::open::{Scan, read_some};
use crate::format::superblock::{self, Superblock};
use crate::format::{Structure, agf, agi, bits, checksum};
use crate::geometry::Geometry;
use crate::source::Source;
use crate::units::{AgNumber, ByteOffset};
use std::collections::{BTreeMap, BTreeSet};

/// How far the scan goes unless all is asked for: 1 GiB.
const SCAN_BOUND: u64 = 1 << 30;
/// Failures one after the other that end the scan.
const GIVE_UP: u32 = 8;
/// Bytes per read of the scan.
const SCAN_PIECE: usize = 1 << 20;
/// Copies looked at once one was found: the first and the last so many AGs.
const ENDS: u32 = 256;

/// A copy of the superblock.
#[derive(Clone, Debug)]
pub struct Copy {
    /// AG it lies in.
    pub ag: AgNumber,
    /// Its byte.
    pub byte: ByteOffset,
    /// Its contents.
    pub superblock: Superblock,
    /// rtstart and rtreserved.
    pub zoned: (u64, u64),
    /// The numbers in it.
    pub geometry: Geometry,
}

impl Copy {
    /// What copies must agree in to count as one file system.
    fn identity(&self) -> ([u8; 16], u32, u32, u32, u64) {
        let sb = &self.superblock;
        (sb.uuid.0, sb.blocksize, sb.agblocks, sb.agcount.0, sb.dblocks.0)
    }
}

/// What a search found, and where it looked.
#[derive(Debug)]
pub struct Search {
    /// Copies in disk order.
    pub found: Vec<Copy>,
    /// Where it looked, for the message when nothing was found.
    pub searched: String,
}

/// The copy at `byte`, if there is a good one.
fn copy_at(data: &dyn Source, byte: u64) -> Option<Copy> {
    let head = read_some(data, byte, 512).ok()?;
    if bits::be32(&head, 0)? != superblock::MAGIC {
        return None;
    }
    let superblock = Superblock::decode(&head)?;
    let zoned = if superblock.features().has_zoned() { superblock::zoned_part(&head) } else { (0, 0) };
    let geometry = Geometry::new(&superblock, zoned).ok()?;
    let ag_bytes = u64::from(geometry.ag_blocks).checked_mul(geometry.block_size())?;
    let ag = AgNumber(u32::try_from(byte.checked_div(ag_bytes)?).ok()?);
    if byte.checked_rem(ag_bytes)? != 0 || ag.0 >= geometry.ag_count {
        return None;
    }
    if geometry.context.has_crc() {
        let sector = read_some(data, byte, usize::from(superblock.sectsize)).ok()?;
        if checksum::verify(&sector, superblock::CRC_OFFSET) != checksum::CrcState::Correct {
            return None;
        }
    }
    Some(Copy { ag, byte: ByteOffset(byte), superblock, zoned, geometry })
}

/// Bytes where mkfs.xfs would begin AG 1 on a device of this size, for every block size: four AGs on a plain device
/// (more below 128 MiB, less from 4 TiB on), up to 32 on a striped one (`calc_default_ag_geometry`).
fn usual_places(len: u64) -> BTreeSet<u64> {
    let mut places = BTreeSet::new();
    for log in 9..=16u32 {
        let Some(blocks) = len.checked_shr(log) else { continue };
        let most = (1u64 << 40 >> log).saturating_sub(1);
        for shift in 0..=5u32 {
            let round_up = blocks.saturating_add((1u64 << shift).saturating_sub(1)) >> shift;
            for ag in [round_up, blocks >> shift, most] {
                if let Some(byte) = ag.checked_shl(log).filter(|&byte| byte > 0 && byte < len) {
                    places.insert(byte);
                }
            }
        }
    }
    places
}

/// Bytes where AG 1 begins according to the AGF of AG 0, for every sector and block size.
fn places_by_headers(data: &dyn Source) -> BTreeSet<u64> {
    let mut places = BTreeSet::new();
    let head = read_some(data, 0, 64 * 1024).unwrap_or_default();
    for log in 9..=15u32 {
        let at = 1usize << log;
        let Some(agf) = head.get(at..).and_then(agf::Agf::decode) else { continue };
        if agf.magicnum == agf::MAGIC && agf.seqno.0 == 0 {
            places.extend((9..=16u32).filter_map(|log| u64::from(agf.length.0).checked_shl(log)));
        }
    }
    places
}

/// What an ascending scan over some bytes met.
#[derive(Default)]
struct Scanned {
    /// The first good copy of a file system that begins at byte 0.
    first: Option<Copy>,
    /// Where other file systems begin, as AG headers tell, with the superblocks that agree on it. Below zero: before the
    /// first byte there is.
    elsewhere: BTreeMap<i128, u32>,
    /// Bytes that could not be read.
    unread: u64,
}

/// File systems that begin elsewhere, of which so many are kept.
const ELSEWHERE: usize = 16;

/// Scans for copies of a file system that begins at byte 0, and notes where others begin.
fn scan(data: &dyn Source, bound: u64) -> Scanned {
    let mut scanned = Scanned::default();
    let (mut byte, bound) = (0u64, bound.min(data.len()));
    // A disk on which nothing can be read is not searched on and on.
    let mut failures = 0u32;
    while byte < bound {
        if failures >= GIVE_UP {
            scanned.unread = scanned.unread.saturating_add(bound.saturating_sub(byte));
            break;
        }
        let piece = read_some(data, byte, SCAN_PIECE).unwrap_or_default();
        failures = if piece.is_empty() { failures.saturating_add(1) } else { 0 };
        if piece.is_empty() {
            let length = u64::try_from(SCAN_PIECE).unwrap_or(u64::MAX).min(bound.saturating_sub(byte));
            scanned.unread = scanned.unread.saturating_add(length);
        }
        let hits = piece.chunks(512).zip(0u64..).filter(|(sector, _)| bits::be32(sector, 0) == Some(superblock::MAGIC));
        for (_, sector) in hits {
            let at = byte.saturating_add(sector.saturating_mul(512));
            if let Some(copy) = copy_at(data, at).filter(|copy| copy.ag.0 > 0) {
                scanned.first = Some(copy);
                return scanned;
            }
            if let Some(base) = base_of(data, at).filter(|&base| base != 0)
                && (scanned.elsewhere.len() < ELSEWHERE || scanned.elsewhere.contains_key(&base))
            {
                let count = scanned.elsewhere.entry(base).or_default();
                *count = count.saturating_add(1);
            }
        }
        byte = byte.saturating_add(u64::try_from(SCAN_PIECE).unwrap_or(u64::MAX));
    }
    scanned
}

/// Where the file system begins of which a superblock lies at `byte`, by the number of its AG in the AGF behind it.
fn base_of(data: &dyn Source, byte: u64) -> Option<i128> {
    let head = read_some(data, byte, 512).ok()?;
    let superblock = Superblock::decode(&head)?;
    let zoned = if superblock.features().has_zoned() { superblock::zoned_part(&head) } else { (0, 0) };
    let geometry = Geometry::new(&superblock, zoned).ok()?;
    let size = usize::from(superblock.sectsize);
    let sector = read_some(data, byte, size).ok()?;
    let header = read_some(data, byte.checked_add(u64::from(superblock.sectsize))?, size).ok()?;
    let agf = agf::Agf::decode(&header)?;
    let sound =
        |bytes: &[u8], at| !geometry.context.has_crc() || checksum::verify(bytes, at) == checksum::CrcState::Correct;
    let fits = agf.magicnum == agf::MAGIC && geometry.ag_length(agf.seqno) == Some(agf.length.0);
    if !fits || !sound(&sector, superblock::CRC_OFFSET) || !sound(&header, agf::CRC_OFFSET) {
        return None;
    }
    let ag_bytes = i128::from(geometry.ag_blocks).checked_mul(geometry.block_size().into())?;
    i128::from(byte).checked_sub(i128::from(agf.seqno.0).checked_mul(ag_bytes)?)
}

/// Where file systems begin that do not begin at byte 0, in words.
fn elsewhere(bases: &BTreeMap<i128, u32>) -> String {
    let one = |(&base, &count): (&i128, &u32)| {
        let found = format!("{count} sound superblock{} with AG headers", if count == 1 { "" } else { "s" });
        match base {
            1.. => format!("; but XFS begins at byte {base} ({found}): inspect it with --offset {base}"),
            _ => format!(
                "; but there are {found} of an XFS that begins {} bytes before the first byte of this device or image: its front is missing",
                base.saturating_neg()
            ),
        }
    };
    bases.iter().map(one).collect()
}

/// Looks for copies of the superblock, the primary left aside.
pub fn find_copies(data: &dyn Source, extent: Scan) -> Search {
    let len = data.len();
    let bound = match extent {
        Scan::None => 0,
        Scan::Bounded => SCAN_BOUND.min(len),
        Scan::All => len,
    };
    let known = usual_places(len).into_iter().chain(places_by_headers(data)).filter(|&byte| byte < len);
    let near = known.filter_map(|byte| copy_at(data, byte)).find(|copy| copy.ag.0 > 0);
    let scanned = if near.is_some() { Scanned::default() } else { scan(data, bound) };
    let unread =
        if scanned.unread > 0 { format!(", {} of which could not be read", scanned.unread) } else { String::new() };
    let searched = format!(
        "of a file system that begins at byte 0: looked at the AG starts that mkfs.xfs would choose, by AG headers, and in \
         the first {bound} bytes{unread}{}{}",
        if bound < len { " (--scan searches all)" } else { "" },
        elsewhere(&scanned.elsewhere)
    );
    let Some(first) = near.or(scanned.first) else { return Search { found: Vec::new(), searched } };
    let geometry = first.geometry.clone();
    let tail = geometry.ag_count.saturating_sub(ENDS).max(ENDS.min(geometry.ag_count));
    let found = (1..ENDS.min(geometry.ag_count))
        .chain(tail..geometry.ag_count)
        .filter_map(|ag| geometry.ag_start(AgNumber(ag)))
        .filter_map(|byte| copy_at(data, byte.0));
    // Behind what a copy tells of, more AGs may follow: it may be from before a grow.
    let ag_bytes = u64::from(geometry.ag_blocks).saturating_mul(geometry.block_size());
    let behind = (0..u64::from(ENDS))
        .map_while(|n| copy_at(data, ag_bytes.checked_mul(u64::from(geometry.ag_count).saturating_add(n))?))
        .take_while(|copy| copy.superblock.metadata_uuid() == first.superblock.metadata_uuid());
    let found = found.chain(behind).collect();
    Search { found, searched }
}

/// Do the AG headers on disk belong to a file system of the size that a superblock tells of?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The last AG has a header of that number and length, and no AG of this file system follows.
    Yes,
    /// It has none, or another AG follows.
    No,
    /// Not all of this could be read.
    Unknown,
}

/// Evidence for the size that a superblock tells of. Growing writes the headers of the new AGs first, then the primary, and
/// the copies last (`xfs_growfs_data_private`): after an interrupted grow most copies may tell of the size before.
pub fn fit(data: &dyn Source, sb: &Superblock, geometry: &Geometry) -> Fit {
    let ag_bytes = u64::from(geometry.ag_blocks).saturating_mul(geometry.block_size());
    let sector = usize::try_from(geometry.context.sector_size).unwrap_or(512);
    let crc = geometry.context.has_crc();
    // Magic, number and, where it matters, length of a header; with checksums also whose it is.
    let is_header = |ag: u32, length: Option<u32>, which: u64| -> std::io::Result<bool> {
        let start = u64::from(ag).saturating_mul(ag_bytes);
        let bytes =
            read_some(data, start.saturating_add(which.saturating_mul(u64::try_from(sector).unwrap_or(512))), sector)?;
        let words = |at: usize| bits::be32(&bytes, at);
        let (magic, uuid, at) = match which {
            1 => (agf::MAGIC, 64, agf::CRC_OFFSET),
            _ => (agi::MAGIC, 296, agi::CRC_OFFSET),
        };
        let own = || {
            checksum::verify(&bytes, at) == checksum::CrcState::Correct
                && bits::array::<16>(&bytes, uuid) == Some(sb.metadata_uuid().0)
        };
        Ok(words(0) == Some(magic)
            && words(8) == Some(ag)
            && length.is_none_or(|length| words(12) == Some(length))
            && (!crc || own()))
    };
    let Some(last) = geometry.ag_count.checked_sub(1) else { return Fit::No };
    let length = geometry.ag_length(AgNumber(last));
    let ends = [is_header(last, length, 1), is_header(last, length, 2)];
    let follow = match u64::from(geometry.ag_count).saturating_mul(ag_bytes) < data.len() {
        true => [is_header(geometry.ag_count, None, 1), is_header(geometry.ag_count, None, 2)],
        false => [Ok(false), Ok(false)],
    };
    let yes = |answer: &std::io::Result<bool>| matches!(answer, Ok(true));
    // Without checksums nothing tells whose a header is: both have to be there.
    let follows = if crc { follow.iter().any(yes) } else { follow.iter().all(yes) };
    if follows {
        Fit::No
    } else if ends.iter().chain(&follow).any(Result::is_err) {
        Fit::Unknown
    } else if ends.iter().any(yes) {
        Fit::Yes
    } else {
        Fit::No
    }
}

/// The copy to use: one of those to whose size the AG headers fit; among them, of those that most agree with; of equals, the
/// ones that tell of the larger file system (a copy left behind by growfs tells of the smaller), and one that names the root
/// inode.
pub fn best<'c>(data: &dyn Source, found: &'c [Copy]) -> Option<&'c Copy> {
    let mut votes: BTreeMap<_, (bool, u32, u64)> = BTreeMap::new();
    for copy in found {
        let fits = || fit(data, &copy.superblock, &copy.geometry) == Fit::Yes;
        let entry = votes.entry(copy.identity()).or_insert_with(|| (fits(), 0, copy.superblock.dblocks.0));
        entry.1 = entry.1.saturating_add(1);
    }
    let (identity, _) = votes.into_iter().max_by_key(|&(_, vote)| vote)?;
    let of_those = || found.iter().filter(|copy| copy.identity() == identity);
    of_those().find(|copy| names_root(&copy.superblock)).or_else(|| of_those().next())
}

/// mkfs.xfs writes the root inode into the copies of the middle and the last AG alone.
pub fn names_root(copy: &Superblock) -> bool {
    !copy.rootino.is_null() && copy.rootino.0 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_places_hold_what_mkfs_chose() {
        // C01: 512 MiB, 4 AGs of 128 MiB. C45: 384 MiB, 4 AGs of 96 MiB.
        assert!(usual_places(536_870_912).contains(&134_217_728));
        assert!(usual_places(402_653_184).contains(&100_663_296));
        // C50: a LUN of more than 32 TiB: the largest AG, 268435455 blocks of 4 KiB.
        assert!(usual_places(160_255_967_232 * 4096).contains(&(268_435_455 * 4096)));
        assert!(usual_places(0).is_empty());
    }
}
