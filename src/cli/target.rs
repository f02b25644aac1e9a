//! Opening a target: the stack of sources, the superblock in use, and everything about them that must be marked.

use super::journal;
use super::session::{Outcome, Session};
use crate::check::superblock::{self as rules, Subject};
use crate::error::{Error, Place, Result};
use crate::format::checksum::{self, CrcState};
use crate::format::dinode::Fork;
use crate::format::superblock as format_sb;
use crate::hazard::Same;
use crate::report::text::{escaped, size};
use crate::source::{self, Cached, FileKind, FileSource, Source, Window, container, mounts};
use crate::units::{AgNumber, ByteOffset, Device};
use crate::volume::{AgHeader, Choice, Devices, Fit, Lost, OpenError, Origin, Scan, Survey, Volume, fit};
use crate::walk::log::{self, Log};
use crate::walk::{Inode, extents};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Opened = Arc<Cached<Box<dyn Source>>>;

/// An open file system with the names of its devices.
pub struct Target {
    /// The file system.
    pub volume: Volume,
    /// Name of the data device, as it was given.
    pub name: String,
    /// Name of the log device, where there is one.
    pub log_name: Option<String>,
    /// Name of the realtime device, where there is one.
    pub rt_name: Option<String>,
    /// Logical sector in bytes, where the target is a block device.
    pub logical_sector: Option<u32>,
    /// Is it mounted, and so does the running kernel take it?
    pub mounted: bool,
    /// Why what lies on the realtime device that was given cannot be this file system's.
    pub rt_refused: Option<String>,
    /// What could not be read.
    survey: Survey,
    /// Which devices are one and the same.
    pub same: Same,
    /// The state of the log; none where the superblock was only inferred.
    pub log: Option<Log>,
    sources: Vec<(String, Opened)>,
}

/// A path for messages.
pub fn shown(path: &Path) -> String {
    escaped(path.as_os_str().as_bytes())
}

fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
    let what = what.into();
    move |source| Error::System { what, source }
}

/// Opens one device or image with everything that was asked for on top.
fn open_source(session: &mut Session, path: &Path, offset: Option<u64>) -> Result<(Opened, FileKind)> {
    let name = shown(path);
    let file = FileSource::open(path).map_err(system(name.clone()))?;
    let kind = file.kind();
    if let FileKind::BlockDevice(..) = kind
        && !file.is_direct()
    {
        session.warn(
            "page-cache",
            format!("{name}: the system refuses direct reads; what is read comes from the page cache and may be old"),
            Outcome::Clean,
        );
    }
    let mut base: Box<dyn Source> =
        if kind == FileKind::Regular { regular(session, file, &name)? } else { Box::new(file) };
    if let Some(offset) = offset {
        if offset >= base.len() {
            let len = base.len();
            return Err(Error::request(format!("--offset {offset}: {name} ends at byte {len}")));
        }
        base = Box::new(Window::new(base, ByteOffset(offset), None));
    }
    Ok((Arc::new(Cached::new(base)), kind))
}

fn regular(session: &Session, file: FileSource, name: &str) -> Result<Box<dyn Source>> {
    let file = if source::is_zstd(&file) {
        let handle = file.file().try_clone().map_err(system(name))?;
        let unpacked = source::unpack_zstd(handle, session.common.zstd_long).map_err(|why| {
            let hint = if why.kind() == std::io::ErrorKind::Unsupported { " (--zstd-long takes it)" } else { "" };
            system(format!("{name}: cannot unpack the zstd image{hint}"))(why)
        })?;
        FileSource::from_file(unpacked).map_err(system(name))?
    } else {
        file
    };
    #[cfg(feature = "mmap")]
    if session.common.mmap && file.len() > 0 {
        return Ok(Box::new(source::MmapSource::new(file.file()).map_err(system(format!("{name}: cannot map")))?));
    }
    if session.common.mmap && !cfg!(feature = "mmap") {
        return Err(Error::request("--mmap: this program was built without it"));
    }
    Ok(Box::new(file))
}

/// Says that a device is in use, where it is.
fn mark_mounted(session: &mut Session, path: &Path, kind: FileKind) -> bool {
    let numbers = mounts::devices_of(path, kind);
    let mounted = mounts::mounts().into_iter().find(|m| numbers.contains(&m.device));
    if let Some(mount) = &mounted {
        let text = format!(
            "{} is mounted at {}: what is read here may be older than what the kernel holds",
            shown(path),
            shown(&mount.mount_point)
        );
        session.warn("mounted", text, Outcome::Clean);
    }
    mounted.is_some()
}

/// The devices behind a mount point: data, log, realtime.
fn behind_mount_point(path: &Path) -> Result<(PathBuf, Option<PathBuf>, Option<PathBuf>)> {
    let full = path.canonicalize().map_err(system(shown(path)))?;
    let mount = mounts::mounts().into_iter().rfind(|m| m.mount_point == full);
    match mount {
        Some(m) if m.fs_type == "xfs" => {
            let option = |name| m.option(name).map(PathBuf::from);
            Ok((m.source.clone(), option("logdev"), option("rtdev")))
        }
        Some(m) => Err(Error::request(format!("{} is a mount point of {}, not xfs", shown(path), m.fs_type))),
        None => Err(Error::request(format!("{} is a directory, but no mount point", shown(path)))),
    }
}

/// Opens a target of any command.
///
/// # Errors
/// Whatever keeps it from being read as XFS, in one sentence.
pub fn open(session: &mut Session, path: &Path) -> Result<Target> {
    let (mut log, mut rt) = (session.common.logdev.clone(), session.common.rtdev.clone());
    let mut data = path.to_owned();
    if path.is_dir() {
        let (device, log_device, rt_device) = behind_mount_point(path)?;
        data = device;
        log = log.or(log_device);
        rt = rt.or(rt_device);
    }
    let (data_source, kind) = open_source(session, &data, session.common.offset)?;
    let mut sources = vec![(shown(&data), Arc::clone(&data_source))];
    let mut devices = Devices::data_only(data_source.clone());
    for (path, slot) in [(&log, &mut devices.log), (&rt, &mut devices.rt)] {
        if let Some(path) = path {
            let (opened, _) = open_source(session, path, None)?;
            sources.push((shown(path), Arc::clone(&opened)));
            *slot = Some(opened);
        }
    }
    let same = super::devices::mark_same(session, &data, log.as_deref(), rt.as_deref());
    let choice = Choice { copy: session.common.sb, scan: scan(session, &*data_source) };
    let volume = match Volume::open(devices, choice) {
        Ok(volume) => volume,
        Err(OpenError::Other(error)) => return Err(error),
        Err(OpenError::NoSuperblock { reason, searched }) => {
            record_stats(session, &sources);
            return Err(Error::NotXfs(not_xfs(&*data_source, &shown(&data), &reason, &searched)));
        }
    };
    // A check reads with patience of its own.
    let (volume, survey) = match session.is_judging() {
        true => (volume, Survey::default()),
        false => volume.surveyed(&Arc::default()),
    };
    let is_device = matches!(kind, FileKind::BlockDevice(..));
    let mut target = Target {
        log: None,
        volume,
        name: shown(&data),
        log_name: log.as_deref().map(shown),
        rt_name: rt.as_deref().map(shown),
        logical_sector: is_device.then(|| data_source.sector_size()),
        mounted: false,
        rt_refused: None,
        same,
        survey,
        sources,
    };
    target.mounted = mark_mounted(session, &data, kind);
    if refuse_container(&target, &*data_source) {
        record_stats(session, &target.sources);
        return Err(Error::NotXfs(inside_container(&target, &*data_source)));
    }
    if let Err(error) = mark_md(session, &target, &*data_source) {
        record_stats(session, &target.sources);
        return Err(error);
    }
    mark_superblock(session, &target);
    mark_size(session, &target);
    if target.is_complete() {
        let log = log::probe(&target.volume);
        journal::mark(session, &target, &log);
        target.log = Some(log);
    }
    target.rt_refused = super::devices::mark_realtime(session, &target);
    if same.rt_data || same.rt_log {
        target.rt_refused = Some(format!("{} is in use as another device", target.rt_name.clone().unwrap_or_default()));
    }
    Ok(target)
}

/// How far to look for copies: where something else is recognised, only where mkfs.xfs would have put them.
fn scan(session: &Session, data: &dyn Source) -> Scan {
    let mut magic = [0; 4];
    let is_xfs = data.read_at(ByteOffset(0), &mut magic).is_ok() && magic == *b"XFSB";
    if session.common.scan {
        Scan::All
    } else if !is_xfs && container::identify(data).is_some() {
        Scan::None
    } else {
        Scan::Bounded
    }
}

fn record_stats(session: &mut Session, sources: &[(String, Opened)]) {
    for (name, source) in sources {
        session.add_stats(name, source.stats());
    }
}

impl Target {
    /// Keeps little of what is read, for runs that read nearly everything once.
    pub fn keep_little(&self) {
        self.sources.iter().for_each(|(_, source)| source.keep_at_most(64));
    }

    /// Tells what could not be read, and hands the figures of I/O over to the session.
    pub fn close(&self, session: &mut Session) {
        self.tell_unread(session);
        record_stats(session, &self.sources);
    }

    /// Whatever a command said of parts that it met: nothing unreadable is left out without a word.
    fn tell_unread(&self, session: &mut Session) {
        const SHOWN: usize = 8;
        if self.survey.is_whole() {
            return;
        }
        session.not_wholly_read();
        let gaps = self.survey.gaps();
        for gap in gaps.iter().take(SHOWN) {
            let text = format!(
                "{}: {} bytes from byte {} of the {} device on cannot be read: {}. What lies there is missing in the answer, and \
                 nothing that looks damaged is certain. Copy the device first (ddrescue), and work with the copy",
                self.name, gap.length, gap.byte, gap.device, gap.why
            );
            session.warn("unreadable", text, Outcome::Incomplete);
        }
        if let Some(more) = gaps.len().checked_sub(SHOWN).filter(|&more| more > 0) {
            session.tell(&format!("{}: {more} more ranges cannot be read", self.name));
        }
        for device in self.survey.given_up() {
            let text = format!(
                "{}: the {device} device was given up after reads all over it failed one after the other; the rest was not \
                 asked for",
                self.name
            );
            session.warn("device-given-up", text, Outcome::Incomplete);
        }
    }

    /// Where the superblock in use lies.
    pub fn superblock_place(&self) -> Place {
        let (ag, byte) = match self.volume.origin() {
            Origin::Copy { copy, .. } => (copy.ag, copy.byte),
            Origin::Chosen { ag, byte } => (*ag, *byte),
            Origin::Primary | Origin::Inferred { .. } => (AgNumber(0), ByteOffset(0)),
        };
        Place::new(Device::Data, byte, u64::from(self.volume.context().sector_size), format!("sb {ag}"))
    }

    /// State of the checksum of the superblock in use.
    pub fn superblock_crc(&self) -> CrcState {
        if !self.volume.context().has_crc() || !self.is_complete() {
            return CrcState::Unchecked;
        }
        let place = self.superblock_place();
        match self.volume.read(Device::Data, place.byte, self.volume.context().sector_size, "sb") {
            Ok(block) => checksum::verify(&block.bytes, format_sb::CRC_OFFSET),
            Err(_) => CrcState::Unchecked,
        }
    }

    /// May content be taken from the realtime device?
    ///
    /// # Errors
    /// [`Error::Request`] with what speaks against it.
    pub fn believe_realtime(&self, inode: Inode<'_>) -> Result<()> {
        let on_rt = self.volume.geometry().realtime.as_ref().is_some_and(|rt| rt.device == Device::Rt);
        match &self.rt_refused {
            Some(why) if on_rt && extents::on_realtime(inode, Fork::Data) => {
                let text = format!(
                    "inode {}: its content lies on the realtime device, and this is another one: {why}",
                    inode.ino
                );
                Err(Error::request(text))
            }
            _ => Ok(()),
        }
    }

    /// Was every figure of the superblock read from disk?
    pub fn is_complete(&self) -> bool {
        !matches!(self.volume.origin(), Origin::Inferred { .. })
    }
}

/// A superblock copy was found on a device that now holds something else: the answer would be about the past.
fn refuse_container(target: &Target, data: &dyn Source) -> bool {
    matches!(target.volume.origin(), Origin::Copy { .. } | Origin::Inferred { .. })
        && container::identify(data).is_some()
}

/// An md superblock beside a good superblock of XFS: a member of an array begins like the array, unless it was left behind
/// by an array that is no more. Where the AG headers do not lie on this device as the superblock says, it holds a part.
fn mark_md(session: &mut Session, target: &Target, data: &dyn Source) -> Result<()> {
    let (Some(md), Some(found)) = (container::md(data), container::identify(data)) else { return Ok(()) };
    let (name, volume) = (&target.name, &target.volume);
    if !matches!(volume.origin(), Origin::Primary | Origin::Chosen { .. }) {
        return Ok(());
    }
    let whole = md.holds_all() || fit(data, volume.superblock(), volume.geometry()) == Fit::Yes;
    if !whole && matches!(volume.origin(), Origin::Primary) {
        return Err(Error::NotXfs(describe(data, name).unwrap_or_default()));
    }
    let why = match (whole, md.holds_all()) {
        (_, true) => "it holds all data of the array, and is read as it is",
        (true, false) => {
            "but the AG headers lie on this device as its superblock says, so that it is read as a file system of its own: \
             the md superblock may be left from an older array"
        }
        (false, false) => {
            "it is read through the superblock that was asked for; what lies on the other members is missing"
        }
    };
    let outcome = if whole { Outcome::Clean } else { Outcome::Incomplete };
    session.warn("md-member", format!("{name}: this is {}; {why}", found.name), outcome);
    Ok(())
}

fn inside_container(target: &Target, data: &dyn Source) -> String {
    let mut text = describe(data, &target.name).unwrap_or_default();
    if let Origin::Copy { copy, .. } = target.volume.origin() {
        let ag = copy.ag;
        text.push_str(&format!(
            "; besides, a superblock copy of an older XFS (AG {ag}) lies at byte {}: --sb {ag} reads through it",
            copy.byte
        ));
    }
    text
}

/// What a device is, when it is known: one sentence, with the places where an XFS lies inside.
fn describe(data: &dyn Source, name: &str) -> Option<String> {
    let found = container::identify(data)?;
    let mut text = format!("{name}: this is {}", found.name);
    if let Some(detail) = &found.detail {
        text.push_str(&format!("; {detail}"));
    }
    let is_xfs = |start: u64| {
        let mut magic = [0; 4];
        data.read_at(ByteOffset(start), &mut magic).is_ok() && magic == *b"XFSB"
    };
    for part in &found.parts {
        let length = part.length.map_or(String::new(), |n| format!(", {} long", size(n)));
        let part_name = escaped(part.name.as_bytes());
        if is_xfs(part.start) {
            text.push_str(&format!(
                "; {part_name} at byte {start}{length} holds XFS: inspect it with --offset {start}",
                start = part.start
            ));
        } else {
            text.push_str(&format!("; {part_name} at byte {}{length} holds no XFS superblock", part.start));
        }
    }
    Some(text)
}

/// One sentence about a device on which no XFS was found.
fn not_xfs(data: &dyn Source, name: &str, reason: &str, searched: &str) -> String {
    if data.is_empty() {
        return format!("{name}: empty, 0 bytes");
    }
    if let Some(text) = describe(data, name) {
        return text;
    }
    let zeros = container::leading_zeros(data, 1 << 30);
    let wiped = if zeros == data.len() {
        format!("; all {zeros} bytes are zero")
    } else if zeros >= 512 {
        format!("; the first {zeros} bytes are zero")
    } else {
        String::new()
    };
    format!("{name}: no XFS here: {reason}{wiped}; no copy of a superblock {searched}")
}

/// What is wrong with the primary superblock.
fn lost(reason: &Lost) -> String {
    match reason {
        Lost::Unreadable(why) => format!("could not be read: {why}"),
        Lost::Bad(why) => format!("is of no use: {why}"),
    }
}

/// Marks whatever is to be said of the superblock in use.
fn mark_superblock(session: &mut Session, target: &Target) {
    let name = &target.name;
    match target.volume.origin() {
        Origin::Copy { reason, copy, found } => {
            let ags: Vec<String> = found.iter().map(|c| format!("AG {} at byte {}", c.ag, c.byte)).collect();
            let (count, shown) = (ags.len(), ags.get(..8).unwrap_or(&ags).join(", "));
            let more = if count > 8 { " …" } else { "" };
            let reason = lost(reason);
            let text = format!(
                "{name}: the primary superblock (byte 0) {reason}\n  figures are from the secondary copy in AG \
                 {} at byte {}; {count} good {}: {shown}{more}",
                copy.ag,
                copy.byte,
                if count == 1 { "copy" } else { "copies" }
            );
            session.warn("sb-from-copy", text, Outcome::Incomplete);
            let lost = missing_copies(target, found);
            if !lost.is_empty() {
                session.warn("sb-copy-lost", format!("{name}: no good copy {}", lost.join(", ")), Outcome::Incomplete);
            }
        }
        Origin::Inferred { reason, inferred } => {
            let known: Vec<String> =
                inferred.known.iter().map(|(field, why)| format!("\n  {field:<10} {why}")).collect();
            let reason = lost(reason);
            let text = format!(
                "{name}: the primary superblock (byte 0) {reason}; there is no copy, since the file system \
                 has a single AG.\n  Inferred from the headers of AG 0, which are intact:{}\n  Not known any more \
                 (printed as ?): {}",
                known.concat(),
                inferred.unknown.join("; ")
            );
            session.warn("sb-inferred", text, Outcome::Incomplete);
        }
        Origin::Primary | Origin::Chosen { .. } => {}
    }
    if !target.is_complete() {
        return;
    }
    let sb = target.volume.superblock().clone();
    let primary = matches!(target.volume.origin(), Origin::Primary);
    let features = sb.features();
    let subject = Subject { sb, zoned: target.volume.zoned(), features, crc: target.superblock_crc(), primary };
    for finding in rules::check(&subject, &target.superblock_place()) {
        let text = format!(
            "{name}: {}: {} is {}, expected {} ({} at byte {})",
            finding.rule.summary,
            finding.rule.field,
            finding.found,
            finding.expected,
            finding.place.structure,
            finding.place.byte
        );
        session.warn(finding.rule.id, text, Outcome::Findings);
    }
}

/// AGs whose copy should be there and is not good, as `in AG 2 (byte 167772160: all zeros)`.
fn missing_copies(target: &Target, found: &[crate::volume::Copy]) -> Vec<String> {
    let geometry = target.volume.geometry();
    (1..geometry.ag_count.min(256))
        .map(AgNumber)
        .filter(|ag| !found.iter().any(|copy| copy.ag == *ag))
        .map(|ag| {
            let byte = geometry.ag_start(ag).unwrap_or_default();
            let state = match target.volume.ag_header(ag, AgHeader::Superblock) {
                Ok(block) if block.bytes.iter().all(|&b| b == 0) => "all zeros",
                Ok(_) => "damaged or of another file system",
                Err(_) => "not readable",
            };
            format!("in AG {ag} (byte {byte}: {state})")
        })
        .take(8)
        .collect()
}

/// Marks a device that is shorter than the file system.
fn mark_size(session: &mut Session, target: &Target) {
    let Some(short) = target.volume.shortfall() else { return };
    let geometry = target.volume.geometry();
    let missing = short.needed.saturating_sub(short.present);
    let blocks = missing.div_ceil(geometry.block_size());
    let ag_bytes = u64::from(geometry.ag_blocks).saturating_mul(geometry.block_size());
    let whole =
        geometry.ag_length(short.first_cut).map_or(ag_bytes, |n| u64::from(n).saturating_mul(geometry.block_size()));
    let gone = geometry.ag_count.saturating_sub(short.first_cut.0).saturating_sub(1);
    let after = if gone > 0 { format!("; {gone} more AGs lie wholly past the end") } else { String::new() };
    let before = match short.first_cut.0.checked_sub(1) {
        Some(0) => "; AG 0 is complete".to_owned(),
        Some(last) => format!("; AGs 0 to {last} are complete"),
        None => String::new(),
    };
    let log = log_is_cut(target, short.present)
        .map_or(String::new(), |cut| format!("; the log is {}", if cut { "cut" } else { "complete" }));
    let text = format!(
        "{}: the device is shorter than the file system by {missing} bytes ({blocks} blocks, {} sectors of 512 bytes): \
         it has {} of {} bytes; AG {} is cut ({} of {whole} bytes present){before}{after}{log}. Do not repair: no kernel \
         mounts it; make the device {} sectors long first",
        target.name,
        missing.div_ceil(512),
        short.present,
        short.needed,
        short.first_cut,
        short.first_cut_present,
        short.needed.div_ceil(512),
    );
    session.warn("device-too-short", text, Outcome::Incomplete);
}

fn log_is_cut(target: &Target, present: u64) -> Option<bool> {
    let geometry = target.volume.geometry();
    let start = geometry.block_byte(geometry.log_start?)?;
    let end = start.checked_add(u64::from(geometry.log_blocks).checked_mul(geometry.block_size())?)?;
    Some(end.0 > present)
}
