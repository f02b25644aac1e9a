//! Finding a usable superblock: the primary, a chosen copy, the best copy, or what AG headers allow to infer.

use super::copies::{self, Copy};
use super::{Devices, Volume};
use crate::error::{Error, Place};
use crate::format::features::Features;
use crate::format::superblock::{self, Superblock};
use crate::format::{Structure, agf, agi, bits, checksum, dinode};
use crate::geometry::{Geometry, Impossible};
use crate::source::Source;
use crate::units::{AgNumber, Blocks, ByteOffset, Device, FsBlock, Ino};

/// Which superblock to read through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The copy in this AG instead of the primary (`--sb N`).
    pub copy: Option<u32>,
    /// How far to scan for copies when they are not where they are expected.
    pub scan: Scan,
}

/// How far an ascending scan for superblock copies goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scan {
    /// Not at all: only the places where copies are expected (a device known to hold something else).
    None,
    /// The first GiB.
    #[default]
    Bounded,
    /// The whole device (`--scan`).
    All,
}

/// Why the primary superblock is of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// It could not be read: what stands there is not known.
    Unreadable(String),
    /// What stands there is no superblock, or one of no use.
    Bad(String),
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreadable(why) | Self::Bad(why) => f.write_str(why),
        }
    }
}

/// Where the superblock in use comes from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// The primary, AG 0.
    Primary,
    /// The copy that was asked for.
    Chosen {
        /// Its AG.
        ag: AgNumber,
        /// Its byte.
        byte: ByteOffset,
    },
    /// The best copy, since the primary is of no use.
    Copy {
        /// Why not the primary.
        reason: Lost,
        /// The copy in use.
        copy: Box<Copy>,
        /// Every copy that was found, in disk order.
        found: Vec<Copy>,
    },
    /// No copy anywhere: put together from the headers of AG 0.
    Inferred {
        /// Why not the primary.
        reason: Lost,
        /// What could be inferred.
        inferred: Inferred,
    },
}

/// What could be put together from AG headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inferred {
    /// Fields of the superblock whose values are known, with where they come from.
    pub known: Vec<(&'static str, String)>,
    /// Figures that nothing on disk tells any more.
    pub unknown: &'static [&'static str],
}

/// Why nothing could be opened.
#[derive(Debug)]
pub enum OpenError {
    /// No superblock, no copy, nothing to infer from. The caller may find out what it is instead.
    NoSuperblock {
        /// What is wrong with the primary.
        reason: String,
        /// How far copies were looked for.
        searched: String,
    },
    /// Anything else.
    Other(Error),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSuperblock { reason, searched } => {
                write!(f, "no XFS here: {reason}; no copy of a superblock {searched}")
            }
            Self::Other(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// Decodes the superblock at the start of `sector`.
fn decode(sector: &[u8]) -> Option<(Superblock, (u64, u64))> {
    let sb = Superblock::decode(sector)?;
    let zoned = if sb.features().has_zoned() { superblock::zoned_part(sector) } else { (0, 0) };
    Some((sb, zoned))
}

/// Up to `length` bytes at `byte`, fewer at the end of the device.
pub(super) fn read_some(source: &dyn Source, byte: u64, length: usize) -> std::io::Result<Vec<u8>> {
    let rest = source.len().saturating_sub(byte);
    let length = usize::try_from(rest).unwrap_or(usize::MAX).min(length);
    let mut bytes = vec![0; length];
    source.read_at(ByteOffset(byte), &mut bytes)?;
    Ok(bytes)
}

/// Why the primary cannot be used, or its contents. A read that fails is tried once more.
fn primary(data: &dyn Source) -> Result<(Superblock, (u64, u64), Geometry), Lost> {
    let read = || read_some(data, 0, 512);
    let sector = read().or_else(|_| read()).map_err(|e| Lost::Unreadable(format!("sector 0 cannot be read: {e}")))?;
    let Some((sb, zoned)) = decode(&sector) else {
        return Err(Lost::Bad(format!("the device ends after {} bytes", sector.len())));
    };
    if sb.magicnum != superblock::MAGIC {
        let zeros = if sector.iter().all(|&b| b == 0) { ": the sector is all zeros" } else { "" };
        return Err(Lost::Bad(format!("magicnum is {:#x}, expected 0x58465342 \"XFSB\"{zeros}", sb.magicnum)));
    }
    match Geometry::new(&sb, zoned) {
        Ok(geometry) => Ok((sb, zoned, geometry)),
        Err(Impossible { field, found, expected }) => {
            Err(Lost::Bad(format!("its {field} is impossible: found {found}, expected {expected}")))
        }
    }
}

/// Fills in what mkfs.xfs does not write into copies: the inodes of bitmap and summary of a realtime section without
/// groups. They are the two behind the root inode: mkfs makes them so, xfs_repair looks nowhere else, and growing keeps
/// them. Where a copy lacks the root inode, too, the primary's is taken if it is one of the same file system.
pub(super) fn complete(copy: &mut Superblock, data: &dyn Source) {
    let lacks = |ino: Ino| ino.is_null() || ino.0 == 0;
    if copy.rblocks.0 == 0 || copy.features().has_metadir() || !(lacks(copy.rbmino) || lacks(copy.rsumino)) {
        return;
    }
    let primary = || {
        let (sb, _) = decode(&read_some(data, 0, 512).ok()?)?;
        (sb.magicnum == superblock::MAGIC && sb.metadata_uuid() == copy.metadata_uuid()).then_some(sb.rootino)
    };
    let root = if lacks(copy.rootino) { primary() } else { Some(copy.rootino) };
    let Some(root) = root.filter(|&root| !lacks(root)) else { return };
    (copy.rbmino, copy.rsumino) = (Ino(root.0.saturating_add(1)), Ino(root.0.saturating_add(2)));
}

impl Volume {
    /// Opens a file system through the primary superblock, or else the best copy.
    ///
    /// # Errors
    /// [`OpenError::NoSuperblock`] where there is no XFS; [`OpenError::Other`] where the copy asked for does not exist.
    pub fn open(devices: Devices, choice: Choice) -> Result<Self, OpenError> {
        let data: &dyn Source = &*devices.data;
        let primary = primary(data);
        if let Some(ag) = choice.copy.filter(|&ag| ag != 0) {
            return Self::open_copy(devices.clone(), AgNumber(ag), primary.ok().map(|(_, _, g)| g), choice);
        }
        let reason = match primary {
            Ok((superblock, zoned, geometry)) => {
                return Ok(Self { devices, geometry, superblock, zoned, origin: Origin::Primary, most_steps: None });
            }
            Err(reason) => reason,
        };
        if choice.copy == Some(0) {
            return Err(Error::request(format!("--sb 0: {reason}")).into());
        }
        let search = copies::find_copies(data, choice.scan);
        if let Some(copy) = copies::best(data, &search.found) {
            let (mut superblock, zoned, geometry) = (copy.superblock.clone(), copy.zoned, copy.geometry.clone());
            complete(&mut superblock, data);
            let origin = Origin::Copy { reason, copy: Box::new(copy.clone()), found: search.found };
            return Ok(Self { devices, geometry, superblock, zoned, origin, most_steps: None });
        }
        if let Some((superblock, geometry, inferred)) = infer(data) {
            let origin = Origin::Inferred { reason, inferred };
            return Ok(Self { devices, geometry, superblock, zoned: (0, 0), origin, most_steps: None });
        }
        Err(OpenError::NoSuperblock { reason: reason.to_string(), searched: search.searched })
    }

    fn open_copy(
        devices: Devices,
        ag: AgNumber,
        geometry: Option<Geometry>,
        choice: Choice,
    ) -> Result<Self, OpenError> {
        let data: &dyn Source = &*devices.data;
        let geometry = match geometry {
            Some(geometry) => geometry,
            None => {
                let search = copies::find_copies(data, choice.scan);
                let best = copies::best(data, &search.found).map(|copy| copy.geometry.clone());
                best.ok_or_else(|| Error::request(format!("--sb {ag}: no superblock tells where AG {ag} lies")))?
            }
        };
        let Some(byte) = geometry.ag_start(ag) else {
            let count = geometry.ag_count;
            return Err(Error::request(format!("--sb {ag}: no such AG, there are {count}")).into());
        };
        let place = Place::new(Device::Data, byte, 512, format!("sb {ag}"));
        let sector =
            read_some(data, byte.0, 512).map_err(|source| Error::Io { place: Box::new(place.clone()), source })?;
        let Some((mut superblock, zoned)) = decode(&sector) else {
            let source = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            return Err(Error::Io { place: Box::new(place), source }.into());
        };
        if superblock.magicnum != superblock::MAGIC {
            return Err(Error::Corrupt {
                place: Box::new(place.field("magicnum")),
                what: "no superblock there".into(),
                found: format!("{:#x}", superblock.magicnum),
                expected: "0x58465342 \"XFSB\"".into(),
            }
            .into());
        }
        let geometry = Geometry::new(&superblock, zoned).map_err(|i| Error::Corrupt {
            place: Box::new(place.field(i.field)),
            what: "the copy is of no use".into(),
            found: i.found.to_string(),
            expected: i.expected,
        })?;
        complete(&mut superblock, data);
        Ok(Self { devices, geometry, superblock, zoned, origin: Origin::Chosen { ag, byte }, most_steps: None })
    }
}

/// What headers of a lost AG 0 cannot tell.
const UNKNOWN: &[&str] = &[
    "label",
    "size and place of the log",
    "stripe unit and width",
    "realtime section",
    "quota inodes",
    "maximum inode percentage",
    "features that leave no trace in the headers (bigtime, nrext64, parent, exchange, sparse, ftype)",
];

/// Puts a superblock together from the headers of a single AG: there was never a copy of it.
fn infer(data: &dyn Source) -> Option<(Superblock, Geometry, Inferred)> {
    let head = read_some(data, 0, 128 * 1024).ok()?;
    (9..=15).find_map(|sector_log| infer_with(data, &head, sector_log))
}

fn infer_with(data: &dyn Source, head: &[u8], sector_log: u8) -> Option<(Superblock, Geometry, Inferred)> {
    let sector = 1usize.checked_shl(u32::from(sector_log))?;
    let header = |n: usize| head.get(n.checked_mul(sector)?..n.checked_add(1)?.checked_mul(sector)?);
    let agf_sector = header(1)?;
    let agf = agf::Agf::decode(agf_sector)?;
    let agi = agi::Agi::decode(header(2)?)?;
    let agree = agf.magicnum == agf::MAGIC && agi.magicnum == agi::MAGIC && agf.seqno.0 == 0 && agi.seqno.0 == 0;
    if !agree || agf.length != agi.length || agf.length.0 == 0 {
        return None;
    }
    let v5 = checksum::verify(agf_sector, agf::CRC_OFFSET) == checksum::CrcState::Correct;
    // The root of the free space btree shows the block size: it begins with its magic.
    let magic = if v5 { 0x4142_3342 } else { 0x4142_5442 };
    let blocksize = (9..=16).map(|log| 1u32 << log).find(|&size| {
        let byte = u64::from(agf.bno_root.0).checked_mul(u64::from(size));
        let root = byte.and_then(|byte| read_some(data, byte, 4).ok());
        let fits = u64::from(agf.length.0).checked_mul(u64::from(size)).is_some_and(|n| n <= data.len());
        fits && root.and_then(|b| bits::be32(&b, 0)) == Some(magic)
    })?;
    let (rootino_block, inodesize) = first_inodes(data, &agi, blocksize, v5)?;
    let mut sb = Superblock::decode(&[0; Superblock::SIZE])?;
    sb.magicnum = superblock::MAGIC;
    let assumed = Features::assumed(v5);
    sb.versionnum = assumed.versionnum;
    sb.features2 = assumed.features2;
    sb.features_ro_compat = u32::from(agi.free_level > 0)
        | u32::from(agf.rmap_level > 0) << 1
        | u32::from(agf.refcount_level > 0) << 2
        | u32::from(agi.iblocks > 0) << 3;
    sb.features_incompat = if v5 { assumed.incompat & 0xb } else { 0 };
    (sb.blocksize, sb.blocklog) = (blocksize, u8::try_from(blocksize.trailing_zeros()).ok()?);
    (sb.sectsize, sb.sectlog) = (u16::try_from(sector).ok()?, sector_log);
    (sb.inodesize, sb.inodelog) = (inodesize, u8::try_from(inodesize.trailing_zeros()).ok()?);
    sb.inopblog = sb.blocklog.checked_sub(sb.inodelog)?;
    sb.inopblock = u16::try_from(blocksize.checked_div(u32::from(inodesize))?).ok()?;
    sb.dblocks = Blocks(u64::from(agf.length.0));
    (sb.agblocks, sb.agcount) = (agf.length.0, AgNumber(1));
    sb.agblklog = u8::try_from(agf.length.0.checked_next_power_of_two()?.trailing_zeros()).ok()?;
    sb.rextsize = 1;
    sb.uuid = agf.uuid;
    sb.logstart = FsBlock(0);
    sb.rootino = Ino(u64::from(rootino_block));
    (sb.rbmino, sb.rsumino) = (Ino::NULL, Ino::NULL);
    (sb.icount, sb.ifree) = (u64::from(agi.count.0), u64::from(agi.freecount.0));
    sb.fdblocks = u64::from(agf.freeblks.0).saturating_add(u64::from(agf.flcount));
    let geometry = Geometry::new(&sb, (0, 0)).ok()?;
    let known = vec![
        ("sectsize", format!("{sector}: the AGF begins at byte {sector}")),
        ("dblocks", format!("{0}: length of AGF and AGI of AG 0", agf.length)),
        ("blocksize", format!("{blocksize}: block {} begins with the magic of the free space btree", agf.bno_root)),
        ("agcount", "1: AG 0 fills the file system".to_owned()),
        ("inodesize", format!("{inodesize}: distance of the inodes in the first chunk")),
        ("rootino", format!("{rootino_block}: first inode of the inode btree")),
        ("uuid", format!("{}: carried by the AGF", agf.uuid)),
    ];
    Some((sb, geometry, Inferred { known, unknown: UNKNOWN }))
}

/// First inode of AG 0 and the inode size, from the root of the inode btree and the chunk it names.
fn first_inodes(data: &dyn Source, agi: &agi::Agi, blocksize: u32, v5: bool) -> Option<(u32, u16)> {
    let header = if v5 { 56 } else { 16 };
    let root = read_some(data, u64::from(agi.root.0).checked_mul(u64::from(blocksize))?, 4096).ok()?;
    let first = bits::be32(&root, header)?;
    [256u16, 512, 1024, 2048].into_iter().filter(|&size| u32::from(size) <= blocksize).find_map(|size| {
        let byte = u64::from(first).checked_mul(u64::from(size))?;
        let chunk = read_some(data, byte, usize::from(size).checked_mul(4)?).ok()?;
        let own_number = |inode: &[u8]| !v5 || bits::be64(inode, 152) == Some(u64::from(first));
        let directory = bits::be16(&chunk, 2).is_some_and(|m| m & dinode::mode::TYPE == dinode::mode::DIRECTORY);
        let fits = chunk.len() == usize::from(size).checked_mul(4)?
            && own_number(&chunk)
            && directory
            && chunk.chunks(usize::from(size)).all(|inode| bits::be16(inode, 0) == Some(dinode::MAGIC));
        fits.then_some((first, size))
    })
}
