//! What the registry knows about an image: the superblock as a kernel reads it, the AG headers, the devices.
//!
//! A kernel reads the primary superblock and nothing else, so the facts are the primary's wherever it begins with
//! the magic, however absurd its fields are. Every number is raw: rows compute in 64 or 128 bits and check divisors.

use super::{Answer, Evidence};
use crate::check::group::Limits;
use crate::error::Place;
use crate::format::Uuid;
use crate::format::checksum::{self, CrcState};
use crate::format::features::Features;
use crate::format::superblock::{self, Superblock};
use crate::format::{Structure, agf, agfl, agi, bits};
use crate::geometry::Geometry;
use crate::units::{AgNumber, ByteOffset, Device, LogBlock, Lsn};
use crate::volume::{AgHeader, Origin, Volume};
use crate::walk::log::{self, Log, State};
use std::sync::Arc;

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

/// What the caller knows besides the volume, for [`Facts::new`].
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Logical sector of the data device in bytes, where there is a device or one was named.
    pub logical_sector: Option<u32>,
    /// State of the journal.
    pub log: LogState,
    /// Read the AG headers too? The superblock alone takes one read.
    pub headers: bool,
}

/// What the caller knows besides the volume, for [`Facts::of`]: everything else is read.
#[derive(Clone, Debug, Default)]
pub struct Known<'a> {
    /// The journal, where it was looked at already.
    pub log: Option<&'a Log>,
    /// Logical sector of the data device in bytes, where an image is asked about as if it lay on such a device.
    pub logical_sector: Option<u32>,
    /// Which devices are one and the same.
    pub same: Same,
    /// UUIDs of the XFS that the running kernel has mounted, but for this one.
    pub mounted_uuids: Vec<Uuid>,
    /// Leave out inodes, extents and btrees, which take a pass over all of them.
    pub quick: bool,
}

/// Devices that are one and the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Same {
    /// The log device is the data device.
    pub log_data: bool,
    /// The realtime device is the data device.
    pub rt_data: bool,
    /// The realtime device is the log device.
    pub rt_log: bool,
}

impl Same {
    /// Those of either.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            log_data: self.log_data || other.log_data,
            rt_data: self.rt_data || other.rt_data,
            rt_log: self.rt_log || other.rt_log,
        }
    }
}

/// What the journal says.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    /// Cycle and block of its head: no metadata may carry a greater sequence number (`xlog_valid_lsn`).
    pub current: Option<Lsn>,
    /// Byte order of the machine that wrote the records that wait, as `h_fmt` has it.
    pub order: Option<u32>,
    /// Records of another file system, or a record where recovery stops.
    pub bad: Option<Fault>,
    /// The first block is zero and others are not.
    pub wiped: Option<LogBlock>,
    /// The primary superblock as recovery will leave it, where it changes it.
    pub superblock: Option<Superblock>,
    /// What could not be read of it.
    pub unread: Option<String>,
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
    /// Inodes on unlinked lists.
    pub unlinked: Vec<Fault>,
    /// Headers and copies that could not be read.
    pub unread: Vec<Fault>,
    /// Copies of the superblock that speak of more AGs or blocks than the primary.
    pub larger_copies: Vec<Fault>,
    /// The greatest AG count and block count of those.
    pub largest: (u32, u64),
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
    /// Logical sector of the log device, where known.
    pub log_sector: Option<u32>,
    /// Logical sector of the realtime device, where known.
    pub rt_sector: Option<u32>,
    /// Devices that are one and the same.
    pub same: Same,
    /// UUIDs of other XFS that the running kernel has mounted.
    pub mounted_uuids: Vec<Uuid>,
    /// State of the journal.
    pub log: LogState,
    /// The journal, where it was looked at.
    pub journal: Option<Journal>,
    /// The last sector or block of a device, which a mount reads, where it could not be read.
    pub ends_unread: Vec<(Device, Fault)>,
    /// The AG headers, or why they were not looked at.
    pub headers: Result<Headers, String>,
    /// Inodes, extents and btrees, where they were looked at.
    pub deep: Option<super::Deep>,
}

impl Facts {
    /// Everything that is known of a volume: superblock, AG headers, journal, and unless it is to be quick inodes, extents
    /// and btrees. What cannot be read is a fact, too.
    pub fn of(volume: &Volume, known: Known<'_>) -> Self {
        let own = known.log.is_none().then(|| log::state(volume));
        let log = known.log.or(own.as_ref());
        let state = match log.and_then(Log::is_dirty) {
            Some(false) => LogState::Clean,
            Some(true) => LogState::Dirty,
            None => LogState::Unknown,
        };
        let devices = volume.devices();
        // One source for two devices is one device.
        let is = |one: Option<&Arc<_>>, other: Option<&Arc<_>>| one.zip(other).is_some_and(|(a, b)| Arc::ptr_eq(a, b));
        let (data, log_device, rt) = (Some(&devices.data), devices.log.as_ref(), devices.rt.as_ref());
        let same = Same { log_data: is(log_device, data), rt_data: is(rt, data), rt_log: is(rt, log_device) };
        let asked = Asked { logical_sector: known.logical_sector, log: state, headers: true };
        let mut facts = Self::read(volume, asked, log.map(|log| Journal::read(volume, log)));
        facts.same = known.same.or(same);
        facts.mounted_uuids = known.mounted_uuids;
        facts.deep = (!known.quick).then(|| super::Deep::read(volume));
        facts
    }

    /// Reads superblock and AG headers of a volume; of the journal it knows what it is told.
    pub fn new(volume: &Volume, asked: Asked) -> Self {
        Self::read(volume, asked, None)
    }

    fn read(volume: &Volume, asked: Asked, journal: Option<Journal>) -> Self {
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
            log_sector: devices.log.as_ref().map(|log| log.sector_size()),
            rt_sector: devices.rt.as_ref().map(|rt| rt.sector_size()),
            same: Same::default(),
            mounted_uuids: Vec::new(),
            log: asked.log,
            journal,
            ends_unread: Vec::new(),
            headers: Err("AG headers were not asked for".into()),
            deep: None,
            sb,
        };
        if !asked.headers {
            facts.headers = Err("AG headers are not looked at here".into());
            return facts;
        }
        facts.ends_unread = read_ends(volume, &facts);
        facts.headers =
            if facts.sb.agblocks != volume.geometry().ag_blocks || facts.sb.blocksize != volume.context().block_size {
                Err("the primary superblock does not tell where AGs lie".into())
            } else {
                Ok(read_headers(volume, &facts))
            };
        facts
    }

    /// The answer of a condition on how long a device is: open where its last sector could not be read.
    pub fn end_of(&self, device: Device, answer: Answer) -> Answer {
        match (answer, self.ends_unread.iter().find(|(of, _)| *of == device)) {
            (Answer::No, Some((_, fault))) => {
                Answer::Unknown(format!("{}, which every mount reads: {}", fault.place, fault.text))
            }
            (answer, _) => answer,
        }
    }

    /// The answer of a condition on the journal; `Ok(None)` where it does not hold.
    pub fn on_journal(&self, which: impl FnOnce(&Journal) -> Option<&Fault>) -> Answer {
        let Some(journal) = &self.journal else {
            return Answer::Unknown("not looked at yet: the records of the journal decide".into());
        };
        match (which(journal), &journal.unread) {
            (Some(fault), _) => Answer::Yes(Evidence { text: fault.text.clone(), place: Some(fault.place.clone()) }),
            (None, Some(why)) => Answer::Unknown(why.clone()),
            (None, None) => Answer::No,
        }
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
            [] if !headers.unread.is_empty() => {
                let fault = headers.unread.first();
                Answer::Unknown(fault.map_or(String::new(), |fault| format!("{}: {}", fault.place, fault.text)))
            }
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

impl Journal {
    /// What recovery would make of it. Reads the live records.
    fn read(volume: &Volume, log: &Log) -> Self {
        let mut journal = Self::default();
        let fault = |at: LogBlock, text: String| {
            let nowhere = || Place::new(Device::Log, ByteOffset(0), 512, "log");
            Fault { place: log.area.map_or_else(nowhere, |area| area.place(at)), text }
        };
        match &log.state {
            // An empty log begins with cycle 1, block 0 (xlog_alloc_log).
            State::Zeroed { traces } => {
                journal.current = Some(Lsn::new(1, LogBlock(0)));
                journal.wiped = *traces;
            }
            State::Clean { ends, .. } | State::Dirty(ends) => journal.current = Some(ends.current),
            State::Unknown(why @ (log::Unknown::NoHeader { .. } | log::Unknown::Impossible { .. })) => {
                journal.bad = Some(fault(LogBlock(0), format!("neither head nor tail can be found: {why}")));
            }
            State::Unknown(why) => journal.unread = Some(why.to_string()),
        }
        let last = log.ends().map_or(LogBlock(0), |ends| ends.last);
        if let Some(uuid) = log.foreign {
            let right = volume.superblock().uuid;
            let text = format!("the log is of another file system: its records carry uuid {uuid}, this one is {right}");
            let fault = fault(last, text);
            journal.bad = Some(Fault { place: fault.place.field("h_fs_uuid"), ..fault });
            return journal;
        }
        let recovery = match log::verify(volume, log) {
            Ok(Some(recovery)) => recovery,
            Ok(None) => return journal,
            Err(why) => {
                journal.unread = Some(why.to_string());
                return journal;
            }
        };
        journal.order = Some(log.foreign_fmt.unwrap_or(1));
        if let (State::Dirty(ends), true) = (&log.state, recovery.torn.is_some()) {
            // The head goes back to the record that was cut (xlog_verify_head).
            let cycle = ends.current.cycle().saturating_sub(u32::from(recovery.to > ends.head));
            journal.current = Some(Lsn::new(cycle, recovery.to));
        }
        let fails = match log::replay(volume, log, &recovery, &mut |_, _| {}) {
            Ok(replayed) => {
                journal.superblock = replayed.superblock;
                replayed.fails
            }
            Err(why) => {
                journal.unread = Some(why.to_string());
                None
            }
        };
        match fails {
            // Nothing is wrong with it, but on a machine of this byte order.
            Some((_, why)) if why.field == "fmt" && matches!(journal.order, Some(1..=3)) => {}
            Some((at, why)) => journal.bad = Some(fault(at, format!("recovery fails at log block {at}: h_{why}"))),
            None => {}
        }
        journal
    }

    /// Is this sequence number ahead of the log?
    pub fn ahead(&self, lsn: u64) -> Option<Lsn> {
        self.current.filter(|current| lsn != u64::MAX && lsn > current.0)
    }
}

/// The last sector of the data device and the last blocks of log and realtime device, which a mount reads
/// (`xfs_check_sizes`, `xfs_rt_check_size`).
fn read_ends(volume: &Volume, facts: &Facts) -> Vec<(Device, Fault)> {
    let (sb, block) = (&facts.sb, facts.block());
    if !facts.sizes_hold() {
        return Vec::new();
    }
    let rt_start = if facts.internal_rt() { facts.zoned.0 } else { 0 };
    let rt_device = if facts.internal_rt() { Device::Data } else { Device::Rt };
    let all = [
        (Device::Data, Device::Data, sb.dblocks.0, u64::from(sb.sectsize), "last sector"),
        (
            Device::Log,
            Device::Log,
            if sb.logstart.0 == 0 { u64::from(sb.logblocks.0) } else { 0 },
            block,
            "last block of the log",
        ),
        (
            Device::Rt,
            rt_device,
            if facts.rt() { sb.rblocks.0.saturating_add(rt_start) } else { 0 },
            block,
            "last block of the section",
        ),
    ];
    let mut unread = Vec::new();
    for (of, device, blocks, length, what) in all {
        let byte = blocks.checked_mul(block).and_then(|end| end.checked_sub(length));
        let (Some(byte), Some(source)) = (byte, volume.devices().get(device)) else { continue };
        // One that is too short has a row of its own.
        let whole = byte.checked_add(length).is_some_and(|end| end <= source.len());
        if let Some(length) = u32::try_from(length).ok().filter(|_| whole)
            && let Err(error) = volume.read(device, ByteOffset(byte), length, what)
        {
            let place = Place::new(device, ByteOffset(byte), u64::from(length), what);
            unread.push((of, Fault { place, text: error.to_string() }));
        }
    }
    unread
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
            let byte = volume.geometry().ag_header(ag, header.sector()).unwrap_or_default();
            let length = u64::from(volume.context().sector_size);
            let place = Place::new(Device::Data, byte, length, format!("{} {ag}", header.name()));
            Err(Fault { place, text: error.to_string() })
        }
    }
}

fn read_ag(volume: &Volume, facts: &Facts, ag: AgNumber, headers: &mut Headers) {
    let length = volume.geometry().ag_length(ag).unwrap_or(0);
    match sector(volume, ag, AgHeader::Agf) {
        Err(fault) => headers.unread.push(fault),
        Ok((bytes, place)) => {
            let Some(agf) = agf::Agf::decode(&bytes) else { return };
            let fault = |text| Fault { place: place.clone(), text };
            match agf_fault((facts, volume.geometry()), &agf, &bytes, (ag, length)) {
                Some(text) => headers.agf.push(fault(text)),
                None => free_list(facts, &agf, &place, headers),
            }
        }
    }
    match sector(volume, ag, AgHeader::Agi) {
        Err(fault) => headers.unread.push(fault),
        Ok((bytes, place)) => {
            let Some(agi) = agi::Agi::decode(&bytes) else { return };
            let lists = agi.unlinked.iter().filter(|head| !head.is_null()).count();
            if lists > 0 {
                let text = format!("{lists} of 64 lists of unlinked inodes are not empty");
                headers.unlinked.push(Fault { place: place.clone().field("unlinked"), text });
            }
            if let Some(text) = agi_fault((facts, volume.geometry()), &agi, &bytes, (ag, length)) {
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

/// Levels that kernels up to 5.10 let any btree have (`XFS_BTREE_MAXLEVELS`). Later ones compute the bound: what is
/// above both no kernel accepts.
const MAX_LEVELS: u32 = 9;

/// Why an AGF is not accepted (`xfs_agf_verify`).
fn agf_fault(
    (facts, geometry): (&Facts, &Geometry),
    agf: &agf::Agf,
    bytes: &[u8],
    (ag, length): (AgNumber, u32),
) -> Option<String> {
    let slots = facts.agfl_slots();
    if facts.v5() && matches!(checksum::verify(bytes, agf::CRC_OFFSET), CrcState::Bad { .. }) {
        return Some("its checksum does not match".into());
    }
    if facts.v5() && agf.uuid != facts.sb.metadata_uuid() {
        return Some(format!("uuid is {}, of another file system", agf.uuid));
    }
    let most = Limits::of(geometry);
    let levels = |n: u32, most: u32| (1..=most.max(MAX_LEVELS)).contains(&n);
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
        (!levels(agf.bno_level, most.alloc), format!("bnolevel is {}", agf.bno_level)),
        (!levels(agf.cnt_level, most.alloc), format!("cntlevel is {}", agf.cnt_level)),
        (
            facts.features.has_lazy_count() && agf.btreeblks > length,
            format!("btreeblks is {}, the AG has {length} blocks", agf.btreeblks),
        ),
        (
            facts.features.has_rmapbt() && agf.rmap_blocks > length,
            format!("rmapblocks is {}, the AG has {length} blocks", agf.rmap_blocks),
        ),
        (facts.features.has_rmapbt() && !levels(agf.rmap_level, most.rmap), format!("rmaplevel is {}", agf.rmap_level)),
        (
            facts.features.has_reflink() && agf.refcount_blocks > length,
            format!("refcntblocks is {}, the AG has {length} blocks", agf.refcount_blocks),
        ),
        (
            facts.features.has_reflink() && !levels(agf.refcount_level, most.refcount),
            format!("refcntlevel is {}", agf.refcount_level),
        ),
    ];
    tests.into_iter().find_map(|(bad, text)| bad.then_some(text))
}

/// Why an AGI is not accepted (`xfs_agi_verify`).
fn agi_fault(
    (facts, geometry): (&Facts, &Geometry),
    agi: &agi::Agi,
    bytes: &[u8],
    (ag, length): (AgNumber, u32),
) -> Option<String> {
    if facts.v5() && matches!(checksum::verify(bytes, agi::CRC_OFFSET), CrcState::Bad { .. }) {
        return Some("its checksum does not match".into());
    }
    if facts.v5() && agi.uuid != facts.sb.metadata_uuid() {
        return Some(format!("uuid is {}, of another file system", agi.uuid));
    }
    let levels = |n: u32| (1..=Limits::of(geometry).inobt.max(MAX_LEVELS)).contains(&n);
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
        let (agcount, dblocks) = headers.largest;
        headers.largest = (agcount.max(copy.agcount.0), dblocks.max(copy.dblocks.0));
    }
    let rest = bytes.get(208..).unwrap_or_default();
    if facts.v4()
        && let Some(at) = rest.iter().position(|&b| b != 0)
    {
        let text = format!("byte {} behind the last V4 field is not zero", at.saturating_add(208));
        headers.junk.push(Fault { place, text });
    }
}
