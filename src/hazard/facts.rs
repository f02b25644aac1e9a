//! What the registry knows about an image: the superblock as a kernel reads it, the AG headers, the devices.
//!
//! A kernel reads the primary superblock and nothing else, so the facts are the primary's wherever it begins with
//! the magic, however absurd its fields are. Every number is raw: rows compute in 64 or 128 bits and check divisors.

use super::{Answer, Evidence};
use crate::error::Place;
use crate::format::checksum::{self, CrcState};
use crate::format::features::Features;
use crate::format::superblock::{self, Superblock};
use crate::format::{Structure, agf, agfl, agi, bits};
use crate::units::{AgNumber, ByteOffset, Device};
use crate::volume::{AgHeader, Origin, Volume};

/// AGs at each end that are looked at where there are more than twice as many.
const ENDS: u32 = 4096;

/// Is the journal clean?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogState {
    /// Nothing to recover.
    Clean,
    /// Must be recovered: what lies on disk is the state before that.
    Dirty,
    /// Not looked at.
    Unknown,
}

/// What the caller knows besides the volume.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Logical sector of the data device in bytes, where there is a device or one was named.
    pub logical_sector: Option<u32>,
    /// State of the journal.
    pub log: LogState,
    /// Read the AG headers too? The superblock alone takes one read.
    pub headers: bool,
}

/// Something about an AG header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// What, with numbers.
    pub text: String,
}

/// What the AG headers showed.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    /// AGs looked at.
    pub looked_at: u32,
    /// AGs there are.
    pub of: u32,
    /// AGFs that no kernel with verifiers accepts, with the reason.
    pub agf: Vec<Fault>,
    /// AGIs likewise.
    pub agi: Vec<Fault>,
    /// AGFLs likewise (read only when blocks are freed or allocated).
    pub agfl: Vec<Fault>,
    /// Free lists whose count does not fit first and last slot.
    pub free_list: Vec<Fault>,
    /// Free lists that use the last slot, which old 64-bit kernels do not have.
    pub last_slot: Vec<Fault>,
    /// Copies of the superblock that speak of more AGs or blocks than the primary.
    pub larger_copies: Vec<Fault>,
    /// Copies of a V4 superblock with bytes behind the last field.
    pub junk: Vec<Fault>,
}

/// Facts of an image.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The superblock that a kernel would read.
    pub sb: Superblock,
    /// rtstart and rtreserved.
    pub zoned: (u64, u64),
    /// Its feature words.
    pub features: Features,
    /// Does its checksum hold?
    pub crc: CrcState,
    /// Why the primary superblock is none, where that is so; `sb` is a copy then.
    pub primary_lost: Option<String>,
    /// Is `sb` a copy? Inode numbers, counters and inprogress of copies mean nothing.
    pub copy: bool,
    /// Where `sb` lies.
    pub place: Place,
    /// Bytes of the data device.
    pub data_bytes: u64,
    /// Bytes of the realtime device, where it was given.
    pub rt_bytes: Option<u64>,
    /// Bytes of the log device, where it was given.
    pub log_bytes: Option<u64>,
    /// Logical sector of the data device, where known.
    pub logical_sector: Option<u32>,
    /// State of the journal.
    pub log: LogState,
    /// Records of another file system in the journal, where it was looked at.
    pub foreign_log: Option<Fault>,
    /// The AG headers, or why they were not looked at.
    pub headers: Result<Headers, String>,
    /// Inodes, extents and btrees, where they were looked at.
    pub deep: Option<super::Deep>,
}

impl Facts {
    /// Reads the facts of a volume. What cannot be read is a fact, too.
    pub fn new(volume: &Volume, asked: Asked) -> Self {
        let place = |ag: AgNumber, byte| Place::new(Device::Data, byte, 512, format!("sb {ag}"));
        let sector = volume.read(Device::Data, ByteOffset(0), 512, "sb 0").map(|block| block.bytes).unwrap_or_default();
        let raw = Superblock::decode(&sector).filter(|sb| sb.magicnum == superblock::MAGIC);
        let (sb, zoned, at, primary_lost) = match (volume.origin(), raw) {
            (Origin::Chosen { ag, byte }, _) => (volume.superblock().clone(), volume.zoned(), place(*ag, *byte), None),
            (_, Some(raw)) => {
                let zoned = if raw.features().has_zoned() { superblock::zoned_part(&sector) } else { (0, 0) };
                (raw, zoned, place(AgNumber(0), ByteOffset(0)), None)
            }
            (origin, None) => {
                let (at, why) = match origin {
                    Origin::Copy { copy, reason, .. } => (place(copy.ag, copy.byte), reason.to_string()),
                    Origin::Inferred { reason, .. } => (place(AgNumber(0), ByteOffset(0)), reason.to_string()),
                    _ => (place(AgNumber(0), ByteOffset(0)), "sector 0 cannot be read".to_owned()),
                };
                (volume.superblock().clone(), volume.zoned(), at, Some(why))
            }
        };
        let features = sb.features();
        let devices = volume.devices();
        let mut facts = Self {
            crc: crc_of(volume, &sb, &at),
            zoned,
            features,
            copy: primary_lost.is_some() || at.byte.0 != 0,
            primary_lost,
            place: at,
            data_bytes: devices.data.len(),
            rt_bytes: devices.rt.as_ref().map(|rt| rt.len()),
            log_bytes: devices.log.as_ref().map(|log| log.len()),
            logical_sector: asked.logical_sector,
            log: asked.log,
            foreign_log: None,
            headers: Err("AG headers were not asked for".into()),
            deep: None,
            sb,
        };
        facts.headers = if !asked.headers {
            Err("AG headers are not looked at here".into())
        } else if facts.sb.agblocks != volume.geometry().ag_blocks || facts.sb.blocksize != volume.context().block_size
        {
            Err("the primary superblock does not tell where AGs lie".into())
        } else {
            Ok(read_headers(volume, &facts))
        };
        facts
    }

    /// The place of a field of the superblock.
    pub fn field(&self, name: &'static str) -> Place {
        let found = Superblock::FIELDS.iter().find(|f| f.name == name || f.kernel_name == name);
        let (byte, length) = found.map_or((0, 512), |f| (u64::from(f.bit / 8), u64::from(f.bits / 8)));
        let byte = self.place.byte.checked_add(byte).unwrap_or(self.place.byte);
        Place { byte, length, ..self.place.field(name) }
    }

    /// The answer of a condition on a field of the superblock.
    pub fn at(&self, fires: bool, field: &'static str, text: impl FnOnce() -> String) -> Answer {
        if fires { Answer::Yes(Evidence { text: text(), place: Some(self.field(field)) }) } else { Answer::No }
    }

    /// The answer from faults of AG headers.
    pub fn faults(&self, which: impl FnOnce(&Headers) -> &Vec<Fault>) -> Answer {
        let headers = match &self.headers {
            Ok(headers) => headers,
            Err(why) => return Answer::Unknown(why.clone()),
        };
        match which(headers).as_slice() {
            [] if headers.looked_at < headers.of => Answer::Unknown(format!(
                "the headers of {} of {} AGs were looked at, the first and the last",
                headers.looked_at, headers.of
            )),
            [] => Answer::No,
            [fault, rest @ ..] => {
                let more = if rest.is_empty() { String::new() } else { format!(" (and {} more AGs)", rest.len()) };
                let text = format!("{}: {}{more}", fault.place.structure, fault.text);
                Answer::Yes(Evidence { text, place: Some(fault.place.clone()) })
            }
        }
    }

    /// Version 5?
    pub fn v5(&self) -> bool {
        self.features.is_v5()
    }
    /// Version 4?
    pub fn v4(&self) -> bool {
        self.features.version() == 4
    }
    /// One of these bits in features_incompat?
    pub fn incompat(&self, mask: u32) -> bool {
        self.features.incompat & mask != 0
    }
    /// One of these bits in features_ro_compat?
    pub fn ro_compat(&self, mask: u32) -> bool {
        self.features.ro_compat & mask != 0
    }
    /// Is there a realtime section?
    pub fn rt(&self) -> bool {
        self.sb.rblocks.0 != 0
    }
    /// A realtime section with bitmap and summary in two inodes (before realtime groups)?
    pub fn classic_rt(&self) -> bool {
        self.rt() && !self.features.has_metadir()
    }
    /// Block size in bytes.
    pub fn block(&self) -> u64 {
        u64::from(self.sb.blocksize)
    }
    /// Bits of a block, each a realtime extent of a classic bitmap.
    pub fn bits_per_block(&self) -> u64 {
        self.block().saturating_mul(8)
    }
    /// Bytes of a realtime extent, in 64 bits.
    pub fn rt_extent_bytes(&self) -> u64 {
        u64::from(self.sb.rextsize).saturating_mul(self.block())
    }
    /// Is the realtime section on the data device (zoned)?
    pub fn internal_rt(&self) -> bool {
        self.features.has_zoned() && self.zoned.0 != 0
    }
    /// Blocks of the last AG, by the superblock.
    pub fn last_ag_blocks(&self) -> u64 {
        let before = u64::from(self.sb.agcount.0.saturating_sub(1)).saturating_mul(u64::from(self.sb.agblocks));
        self.sb.dblocks.0.saturating_sub(before)
    }
    /// May arithmetic with block, sector, inode and AG sizes be trusted?
    pub fn sizes_hold(&self) -> bool {
        let power = |size: u32, log: u8| 1u32.checked_shl(log.into()) == Some(size);
        let sb = &self.sb;
        (512..=65536).contains(&sb.blocksize)
            && power(sb.blocksize, sb.blocklog)
            && (512..=32768).contains(&sb.sectsize)
            && (256..=2048).contains(&sb.inodesize)
            && power(u32::from(sb.inodesize), sb.inodelog)
            && sb.blocklog.checked_sub(sb.inodelog) == Some(sb.inopblog)
            && sb.agblocks > 0
            && sb.agblklog < 32
            && (4096..=1 << 30).contains(&self.rt_extent_bytes())
            && u32::from(sb.blocklog).saturating_add(u32::from(sb.dirblklog)) <= 16
    }
}

/// State of the checksum of the superblock.
fn crc_of(volume: &Volume, sb: &Superblock, at: &Place) -> CrcState {
    let sizes = 512..=32768;
    let checked = sb.features().is_v5() || sb.crc.0 != 0;
    if !checked || !sizes.contains(&sb.sectsize) {
        return CrcState::Unchecked;
    }
    match volume.read(Device::Data, at.byte, u32::from(sb.sectsize), "sb") {
        Ok(block) => checksum::verify(&block.bytes, superblock::CRC_OFFSET),
        Err(_) => CrcState::Unchecked,
    }
}

fn read_headers(volume: &Volume, facts: &Facts) -> Headers {
    let count = facts.sb.agcount.0.min(volume.geometry().ag_count);
    let mut headers = Headers { of: count, ..Headers::default() };
    let both_ends = count > ENDS.saturating_mul(2);
    let chosen = (0..count).filter(|&ag| !both_ends || ag < ENDS || ag >= count.saturating_sub(ENDS));
    for ag in chosen.map(AgNumber) {
        headers.looked_at = headers.looked_at.saturating_add(1);
        read_ag(volume, facts, ag, &mut headers);
    }
    headers
}

/// A header sector, or the fault that it cannot be read.
fn sector(volume: &Volume, ag: AgNumber, header: AgHeader) -> Result<(Vec<u8>, Place), Fault> {
    match volume.ag_header(ag, header) {
        Ok(block) => Ok((block.bytes, block.place)),
        Err(error) => {
            let byte = volume.geometry().ag_start(ag).unwrap_or_default();
            let place = Place::new(Device::Data, byte, 512, format!("{} {ag}", header.name()));
            Err(Fault { place, text: error.to_string() })
        }
    }
}

fn read_ag(volume: &Volume, facts: &Facts, ag: AgNumber, headers: &mut Headers) {
    let length = volume.geometry().ag_length(ag).unwrap_or(0);
    match sector(volume, ag, AgHeader::Agf) {
        Err(fault) => headers.agf.push(fault),
        Ok((bytes, place)) => {
            let Some(agf) = agf::Agf::decode(&bytes) else { return };
            let fault = |text| Fault { place: place.clone(), text };
            match agf_fault(facts, &agf, &bytes, (ag, length)) {
                Some(text) => headers.agf.push(fault(text)),
                None => free_list(facts, &agf, &place, headers),
            }
        }
    }
    match sector(volume, ag, AgHeader::Agi) {
        Err(fault) => headers.agi.push(fault),
        Ok((bytes, place)) => {
            let Some(agi) = agi::Agi::decode(&bytes) else { return };
            if let Some(text) = agi_fault(facts, &agi, &bytes, (ag, length)) {
                headers.agi.push(Fault { place, text });
            }
        }
    }
    if facts.v5()
        && let Ok((bytes, place)) = sector(volume, ag, AgHeader::Agfl)
    {
        let bad = matches!(checksum::verify(&bytes, agfl::CRC_OFFSET), CrcState::Bad { .. });
        let magic = bits::be32(&bytes, 0).unwrap_or(0);
        if bad || magic != agfl::MAGIC {
            let text = if bad { "its checksum does not match".to_owned() } else { format!("magicnum is {magic:#x}") };
            headers.agfl.push(Fault { place, text });
        }
    }
    if ag.0 > 0 {
        copy(volume, facts, ag, headers);
    }
}

/// Why an AGF is not accepted (`xfs_agf_verify`).
fn agf_fault(facts: &Facts, agf: &agf::Agf, bytes: &[u8], (ag, length): (AgNumber, u32)) -> Option<String> {
    let slots = facts.agfl_slots();
    if facts.v5() && matches!(checksum::verify(bytes, agf::CRC_OFFSET), CrcState::Bad { .. }) {
        return Some("its checksum does not match".into());
    }
    if facts.v5() && agf.uuid != facts.sb.metadata_uuid() {
        return Some(format!("uuid is {}, of another file system", agf.uuid));
    }
    let levels = |n: u32| (1..=32).contains(&n);
    let tests = [
        (agf.magicnum != agf::MAGIC, format!("magicnum is {:#x}", agf.magicnum)),
        (agf.versionnum != 1, format!("versionnum is {}", agf.versionnum)),
        (agf.seqno != ag, format!("seqno is {}", agf.seqno)),
        (agf.length.0 != length, format!("length is {}, the AG has {length} blocks", agf.length)),
        (agf.flfirst >= slots, format!("flfirst is {} of {slots} slots", agf.flfirst)),
        (agf.fllast >= slots, format!("fllast is {} of {slots} slots", agf.fllast)),
        (agf.flcount > slots, format!("flcount is {} of {slots} slots", agf.flcount)),
        (agf.freeblks.0 > length, format!("freeblks is {}, the AG has {length} blocks", agf.freeblks)),
        (agf.freeblks < agf.longest, format!("longest is {}, freeblks {}", agf.longest, agf.freeblks)),
        (!levels(agf.bno_level), format!("bnolevel is {}", agf.bno_level)),
        (!levels(agf.cnt_level), format!("cntlevel is {}", agf.cnt_level)),
        (
            facts.features.has_lazy_count() && agf.btreeblks > length,
            format!("btreeblks is {}, the AG has {length} blocks", agf.btreeblks),
        ),
        (facts.features.has_rmapbt() && !levels(agf.rmap_level), format!("rmaplevel is {}", agf.rmap_level)),
        (facts.features.has_reflink() && !levels(agf.refcount_level), format!("refcntlevel is {}", agf.refcount_level)),
    ];
    tests.into_iter().find_map(|(bad, text)| bad.then_some(text))
}

/// Why an AGI is not accepted (`xfs_agi_verify`).
fn agi_fault(facts: &Facts, agi: &agi::Agi, bytes: &[u8], (ag, length): (AgNumber, u32)) -> Option<String> {
    if facts.v5() && matches!(checksum::verify(bytes, agi::CRC_OFFSET), CrcState::Bad { .. }) {
        return Some("its checksum does not match".into());
    }
    if facts.v5() && agi.uuid != facts.sb.metadata_uuid() {
        return Some(format!("uuid is {}, of another file system", agi.uuid));
    }
    let levels = |n: u32| (1..=32).contains(&n);
    let tests = [
        (agi.magicnum != agi::MAGIC, format!("magicnum is {:#x}", agi.magicnum)),
        (agi.versionnum != 1, format!("versionnum is {}", agi.versionnum)),
        (agi.seqno != ag, format!("seqno is {}", agi.seqno)),
        (agi.length.0 != length, format!("length is {}, the AG has {length} blocks", agi.length)),
        (!levels(agi.level), format!("level is {}", agi.level)),
        (facts.features.has_finobt() && !levels(agi.free_level), format!("free_level is {}", agi.free_level)),
    ];
    tests.into_iter().find_map(|(bad, text)| bad.then_some(text))
}

impl Facts {
    /// Slots of a free list as kernels since 4.5 count them.
    pub fn agfl_slots(&self) -> u32 {
        let header = if self.v5() { 36 } else { 0 };
        u32::from(self.sb.sectsize).saturating_sub(header) / 4
    }
}

fn free_list(facts: &Facts, agf: &agf::Agf, place: &Place, headers: &mut Headers) {
    let slots = facts.agfl_slots();
    let active = if agf.flcount == 0 {
        0
    } else if agf.fllast >= agf.flfirst {
        agf.fllast.saturating_sub(agf.flfirst).saturating_add(1)
    } else {
        slots.saturating_sub(agf.flfirst).saturating_add(agf.fllast).saturating_add(1)
    };
    let (first, last, count) = (agf.flfirst, agf.fllast, agf.flcount);
    if active != count {
        let text =
            format!("flfirst {first} to fllast {last} of {slots} slots are {active} blocks, flcount says {count}");
        headers.free_list.push(Fault { place: place.clone(), text });
    }
    let end = slots.saturating_sub(1);
    if facts.v5() && count > 0 && (first == end || last == end || last < first) {
        let text = format!("flfirst {first}, fllast {last}: slot {end}, the last, is in use");
        headers.last_slot.push(Fault { place: place.clone(), text });
    }
}

fn copy(volume: &Volume, facts: &Facts, ag: AgNumber, headers: &mut Headers) {
    let Ok((bytes, place)) = sector(volume, ag, AgHeader::Superblock) else { return };
    let Some(copy) = Superblock::decode(&bytes).filter(|copy| copy.magicnum == superblock::MAGIC) else { return };
    let good = !facts.v5() || checksum::verify(&bytes, superblock::CRC_OFFSET) == CrcState::Correct;
    let same = copy.uuid == facts.sb.uuid && copy.blocksize == facts.sb.blocksize && copy.agblocks == facts.sb.agblocks;
    if good && same && (copy.dblocks > facts.sb.dblocks || copy.agcount > facts.sb.agcount) {
        let text = format!(
            "the copy says {} AGs and {} blocks, the primary {} and {}",
            copy.agcount, copy.dblocks, facts.sb.agcount, facts.sb.dblocks
        );
        headers.larger_copies.push(Fault { place: place.clone(), text });
    }
    let rest = bytes.get(208..).unwrap_or_default();
    if facts.v4()
        && let Some(at) = rest.iter().position(|&b| b != 0)
    {
        let text = format!("byte {} behind the last V4 field is not zero", at.saturating_add(208));
        headers.junk.push(Fault { place, text });
    }
}
