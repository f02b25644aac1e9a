//! The primary superblock against its copies, and which of them to believe. `xchk_superblock` (scrub/agheader.c),
//! `verify_set_primary_sb`, `secondary_sb_whack` (xfs_repair).

use super::context::{Ctx, Spot};
use super::finding::{Finding, Object, RuleInfo};
use super::group::header_spot;
use super::raised;
use super::superblock::{self, Subject};
use crate::error::Place;
use crate::format::checksum::{self, CrcState};
use crate::format::dinode_view::Dinode;
use crate::format::superblock::{self as format, Superblock};
use crate::format::{Structure, superblock::zoned_part};
use crate::geometry::Geometry;
use crate::units::{AgNumber, ByteOffset, Device, Lsn};
use crate::volume::{AgHeader, Choice, Fit, Origin, Volume, fit, names_root};
use crate::walk::log::{self, State, Unknown};
use std::collections::BTreeMap;

raised! { RULES, structure "sb";
    /// The primary superblock cannot be used; the check went on with the copy that most agree with. xfs_repair writes the
    /// primary from the copies.
    UNUSABLE: "sb-unusable" corrupt "magicnum", "the primary superblock is of no use",
        source "xfs_sb.c:xfs_sb_read_verify; repair/sb.c:verify_sb", since "2.6";
    /// The primary superblock differs from the copies that agree with each other, in a field that never changes after
    /// mkfs.xfs, or only together with the copies. The check went on with the copies. Kernels believe the primary.
    PRIMARY_DIFFERS: "sb-primary-differs" xcorrupt "field", "primary differs from its copies",
        source "repair/sb.c:verify_set_primary_sb; scrub/agheader.c:xchk_superblock", since "scrub";
    /// A copy differs from the primary superblock in a field that never changes after mkfs.xfs, or only together with the
    /// copies. Copies are used when the primary is lost, and by xfs_repair.
    COPY_DIFFERS: "sb-copy-differs" xcorrupt "field", "copy differs from the primary",
        source "scrub/agheader.c:xchk_superblock; repair/agheader.c:compare_sb", since "scrub";
    /// The file system was grown (or shrunk), and the run ended before the copies were written, so that most of them tell of the
    /// size before. The AG headers at the end fit to the primary, and kernels believe it: nothing is wrong with the files. But
    /// xfs_repair believes the copies: it would cut the file system back and drop what lies behind. Do not run it. Mount the file
    /// system and grow it once more (xfs_growfs), which writes all copies.
    COPY_STALE: "sb-copies-before-grow" xcorrupt "field", "copies are from before the file system was grown",
        source "xfs_fsops.c:xfs_growfs_data; xfs_sb.c:xfs_update_secondary_sbs; repair/sb.c:verify_set_primary_sb", since "none";
    /// The log was moved to another place or device, in the primary alone. The log that the primary tells of is one of this file
    /// system and goes with its metadata, and kernels believe it. But xfs_repair believes the copies: it would make the old log the
    /// log again, and what waits in the new one would be lost. Mount and unmount the file system first (logdev= for a log on a
    /// device of its own), then write the place of the log into all superblocks.
    LOG_MOVED: "sb-copies-before-log-moved" xcorrupt "logstart", "copies are from before the log was moved",
        source "xfs_log.c:xfs_log_mount; repair/sb.c:verify_set_primary_sb", since "none";
    /// A copy differs in a field that the kernel changes only in the primary (stripe, label, marks of recovery and repair
    /// …). Harmless.
    COPY_OLD: "sb-copy-old" preen "field", "copy is older than the primary",
        source "scrub/agheader.c:xchk_superblock", since "scrub";
    /// The device ends before the file system does: a volume was made smaller, or an image was cut. Kernels do not mount
    /// it. Do not repair: make the device as long as it was first, and what was cut off may come back.
    DEVICE_SHORT: "sb-device-too-short" xcorrupt "dblocks", "device is shorter than the file system",
        source "xfs_mount.c:xfs_check_sizes; repair/phase1.c", since "2.6";
    /// An upgrade or repair of this file system was not finished, and left a mark. Kernels do not mount it until xfs_repair
    /// has run (7.x: only with ro,norecovery).
    NEEDS_REPAIR: "sb-needs-repair" xcorrupt "features_incompat", "marked as needing repair",
        source "xfs_super.c:xfs_fs_fill_super; repair/phase2.c", since "5.11";
    /// The rest of the sector behind the last field is zero. Newer kernels would read it as fields.
    GARBAGE: "sb-garbage" xcorrupt "bytes", "garbage behind the last field",
        source "scrub/agheader.c:xchk_superblock; repair/agheader.c:secondary_sb_whack", since "scrub";
}

/// Incompatible feature bit: xfs_repair has to run first (`XFS_SB_FEAT_INCOMPAT_NEEDSREPAIR`).
const NEEDSREPAIR: u32 = 0x10;

/// A superblock sector, decoded.
#[derive(Clone, Debug)]
pub struct Sector {
    /// The AG it lies in.
    pub ag: AgNumber,
    /// Its contents.
    pub sb: Superblock,
    /// rtstart and rtreserved.
    pub zoned: (u64, u64),
    /// State of its checksum.
    pub crc: CrcState,
    bytes: Vec<u8>,
}

impl Sector {
    /// Decodes the sector of an AG.
    fn new(ag: AgNumber, bytes: Vec<u8>) -> Option<Self> {
        let sb = Superblock::decode(&bytes)?;
        let features = sb.features();
        let zoned = if features.has_zoned() { zoned_part(&bytes) } else { (0, 0) };
        let size = usize::from(sb.sectsize).clamp(512, bytes.len().max(512));
        let crc = match features.is_v5() {
            true => checksum::verify(bytes.get(..size).unwrap_or(&bytes), format::CRC_OFFSET),
            false => CrcState::Unchecked,
        };
        Some(Self { ag, sb, zoned, crc, bytes })
    }

    /// Magic right, checksum right.
    pub fn is_readable(&self) -> bool {
        self.sb.magicnum == format::MAGIC && !matches!(self.crc, CrcState::Bad { .. })
    }

    fn subject(&self) -> Subject {
        let features = self.sb.features();
        Subject { sb: self.sb.clone(), zoned: self.zoned, features, crc: self.crc, primary: self.ag.0 == 0 }
    }
}

/// The superblock of an AG.
fn sector(volume: &Volume, ag: AgNumber) -> Option<Sector> {
    Sector::new(ag, volume.ag_header(ag, AgHeader::Superblock).ok()?.bytes)
}

/// The sector at byte 0, whatever it is.
pub fn primary(volume: &Volume) -> Option<Sector> {
    let size = volume.context().sector_size;
    Sector::new(AgNumber(0), volume.read(Device::Data, ByteOffset(0), size, "sb 0").ok()?.bytes)
}

/// A field with its value as text: those that the copies share with the primary.
type Fields = Vec<(&'static str, String, bool)>;

/// The fields that are compared, as name, value, and whether the kernel keeps the copies up to date.
fn fields(sector: &Sector) -> Fields {
    let (sb, f) = (&sector.sb, sector.sb.features());
    let metadir = f.has_metadir();
    let mut list: Fields = Vec::new();
    let mut put = |name, value: u64, fixed| list.push((name, value.to_string(), fixed));
    put("blocksize", sb.blocksize.into(), true);
    put("dblocks", sb.dblocks.0, true);
    put("rblocks", sb.rblocks.0, true);
    put("rextents", sb.rextents.0, true);
    put("logstart", sb.logstart.0, true);
    put("rootino", sb.rootino.0, false);
    put("rbmino", sb.rbmino.0, metadir);
    put("rsumino", sb.rsumino.0, metadir);
    put("rextsize", sb.rextsize.into(), true);
    put("agblocks", sb.agblocks.into(), true);
    put("agcount", sb.agcount.get(), true);
    put("rbmblocks", sb.rbmblocks.get(), true);
    put("logblocks", sb.logblocks.get(), true);
    // Bits that mkfs sets for good; attr, nlink and quota come later, in the primary alone.
    put("versionnum", u64::from(sb.versionnum & !0x70), true);
    put("sectsize", sb.sectsize.into(), true);
    put("inodesize", sb.inodesize.into(), true);
    put("inopblock", sb.inopblock.into(), true);
    put("blocklog", sb.blocklog.into(), true);
    put("sectlog", sb.sectlog.into(), true);
    put("inodelog", sb.inodelog.into(), true);
    put("inopblog", sb.inopblog.into(), true);
    put("agblklog", sb.agblklog.into(), true);
    put("rextslog", sb.rextslog.into(), true);
    put("imax_pct", sb.imax_pct.into(), false);
    put("flags", sb.flags.into(), true);
    put("shared_vn", sb.shared_vn.into(), true);
    put("inoalignmt", sb.inoalignmt.get(), true);
    put("unit", sb.unit.into(), false);
    put("width", sb.width.into(), false);
    put("dirblklog", sb.dirblklog.into(), true);
    put("logsectlog", sb.logsectlog.into(), true);
    put("logsectsize", sb.logsectsize.into(), true);
    put("logsunit", sb.logsunit.into(), true);
    // attr2 comes with the first attribute, in the primary alone.
    put("features2", u64::from(sb.features2 & !0x8), true);
    if f.is_v5() {
        put("features_compat", sb.features_compat.into(), true);
        put("features_ro_compat", sb.features_ro_compat.into(), true);
        put("features_incompat", u64::from(sb.features_incompat & !0x10), true);
        put("spino_align", sb.spino_align.get(), true);
    }
    if metadir {
        put("metadirino", sb.metadirino.0, false);
        put("rgcount", sb.rgcount.into(), true);
        put("rgextents", sb.rgextents.into(), true);
        put("rgblklog", sb.rgblklog.into(), true);
    }
    if f.has_zoned() {
        put("rtstart", sector.zoned.0, true);
        put("rtreserved", sector.zoned.1, true);
    }
    if f.has_meta_uuid() {
        list.push(("meta_uuid", sb.meta_uuid.to_string(), true));
    }
    // V5 metadata carries it, unless it was changed since and meta_uuid has the old one.
    list.push(("uuid", sb.uuid.to_string(), f.is_v5() && !f.has_meta_uuid()));
    // In quotes: a label may be empty.
    list.push(("fname", format!("\"{}\"", String::from_utf8_lossy(sb.label())), false));
    list
}

/// What copies must agree in to count as one.
fn identity(sector: &Sector) -> Vec<(&'static str, String)> {
    fields(sector).into_iter().filter(|(_, _, fixed)| *fixed).map(|(name, value, _)| (name, value)).collect()
}

/// AGs whose copies are asked: the first and the last so many.
const ASKED: u32 = 64;

/// Which superblock is believed.
#[derive(Debug, Default)]
pub struct Judgement {
    /// The volume to go on with, where it is not the one given: opened through the copy to believe.
    pub better: Option<Volume>,
    /// Why the primary is believed though most copies tell something else.
    pub outvoted: Option<Outvoted>,
}

/// The primary is right, and a repair that counts copies would believe them instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outvoted {
    /// The copies are from before a grow (or a shrink) that was interrupted.
    Grown,
    /// The copies are from before the log was moved.
    LogMoved,
}

impl Outvoted {
    /// The fields in which the copies are old, and the rule that says so.
    const fn of(self) -> (&'static [&'static str], &'static RuleInfo) {
        match self {
            Self::Grown => (SIZES, COPY_STALE),
            Self::LogMoved => (LOG, LOG_MOVED),
        }
    }
}

/// The volume to go on with, where it is not the one given ([`judge`]).
pub fn better_volume(volume: &Volume) -> Option<Volume> {
    judge(volume).better
}

/// Fields that growing and shrinking change: in the primary first, in the copies at the end.
const SIZES: &[&str] =
    &["dblocks", "agcount", "rblocks", "rextents", "rbmblocks", "rextslog", "rgcount", "rgextents", "rgblklog"];

/// Fields that tell where the log lies.
const LOG: &[&str] = &["logstart", "logblocks", "logsectlog", "logsectsize", "logsunit"];

/// Is there a log where this superblock says, of this file system, and not behind it? `None` where it cannot be told.
fn log_fits(volume: &Volume) -> Option<bool> {
    let log = log::probe(volume);
    match log.state {
        State::Unknown(Unknown::NotGiven { .. } | Unknown::Unreadable(_)) => None,
        State::Unknown(_) | State::Zeroed { .. } => Some(false),
        State::Clean { .. } | State::Dirty(_) => {
            Some(log.foreign.is_none() && log.allows(Lsn(volume.superblock().lsn)) != Some(false))
        }
    }
}

/// Evidence for the size of the realtime section: the bitmap file is as long as its superblock says. `None` where it tells
/// nothing.
fn bitmap_fits(volume: &Volume, sb: &Superblock) -> Option<bool> {
    if sb.features().has_metadir() {
        return None;
    }
    let block = volume.inode(sb.rbmino).ok()?;
    let inode = Dinode::new(&block.bytes);
    let needed = sb.rbmblocks.get().checked_mul(u64::from(sb.blocksize))?;
    inode.has_magic().then(|| u64::try_from(inode.size()) == Ok(needed))
}

/// Which superblock to believe, the primary or the copies that most agree with, where they differ.
///
/// Evidence comes first: a size to which the AG headers at its end (or the realtime bitmap) fit beats one to which they do
/// not, however many copies tell of it. Where it tells nothing, the primary is left for a copy where two or more copies agree
/// with each other and not with it, or one copy and the primary breaks a rule. Where the copies cannot be found by what the
/// primary says, they are looked for.
pub fn judge(volume: &Volume) -> Judgement {
    match volume.origin() {
        Origin::Primary => primary(volume).and_then(|primary| judge_by(volume, &primary)).unwrap_or_default(),
        Origin::Copy { copy, found, .. } => {
            Judgement { better: None, outvoted: is_outvoted(volume, copy, found).then_some(Outvoted::Grown) }
        }
        Origin::Chosen { .. } | Origin::Inferred { .. } => Judgement::default(),
    }
}

/// The primary is lost: do as many copies tell of another size as of the one in use?
fn is_outvoted(volume: &Volume, used: &crate::volume::Copy, found: &[crate::volume::Copy]) -> bool {
    let Some(used) = copy_at(volume, used) else { return false };
    let sectors = found.iter().filter_map(|copy| copy_at(volume, copy));
    let (same, other): (Vec<_>, Vec<_>) = sectors.partition(|copy| identity(copy) == identity(&used));
    let resized = |copy: &&Sector| {
        let differing = differences(copy, &used);
        differing.iter().all(|(name, _, _, fixed)| !fixed || SIZES.contains(name))
    };
    other.iter().filter(resized).count() >= same.len()
}

fn judge_by(volume: &Volume, primary: &Sector) -> Option<Judgement> {
    let mut unread = false;
    let broken = !superblock::check(&primary.subject(), &place(AgNumber(0), 512)).is_empty();
    let count = volume.geometry().ag_count;
    let ags = (1..count.min(ASKED)).chain(count.saturating_sub(ASKED).max(ASKED)..count).map(AgNumber);
    let asked = ags.filter_map(|ag| {
        let sector = sector(volume, ag);
        unread |= sector.is_none();
        sector
    });
    let mut copies: Vec<Sector> = asked.filter(Sector::is_readable).collect();
    copies.extend(behind(volume, primary));
    let mut lost = false;
    // Copies that cannot be read are where the primary says.
    if copies.is_empty() && !unread {
        lost = true;
        let found = crate::volume::find_copies(&*volume.devices().data, crate::volume::Scan::default()).found;
        copies = found.iter().filter_map(|copy| copy_at(volume, copy)).filter(Sector::is_readable).collect();
        // Copies of an older file system say nothing about this one.
        copies.retain(|copy| copy.sb.metadata_uuid() == primary.sb.metadata_uuid());
    }
    let mut votes: BTreeMap<Vec<(&'static str, String)>, usize> = BTreeMap::new();
    for copy in &copies {
        let vote = votes.entry(identity(copy)).or_insert(0);
        *vote = vote.saturating_add(1);
    }
    let own = identity(primary);
    let agree = votes.get(&own).copied().unwrap_or(0);
    let (best, count) = votes.into_iter().filter(|(of, _)| *of != own).max_by_key(|(_, count)| *count)?;
    let of_those = || copies.iter().filter(|copy| identity(copy) == best);
    let chosen = of_those().find(|copy| names_root(&copy.sb)).or_else(|| of_those().next())?;
    let differing = differences(primary, chosen);
    let only = |fields: &[&str]| differing.iter().all(|(name, _, _, fixed)| !fixed || fields.contains(name));
    // Within a device nothing moves a log; a log that is taken a block too early still looks like one.
    let moved = (primary.sb.logstart.0 == 0) != (chosen.sb.logstart.0 == 0);
    if moved && only(LOG) && !broken && !lost && log_fits(volume) == Some(true) {
        return Some(Judgement { better: None, outvoted: (count >= agree.max(1)).then_some(Outvoted::LogMoved) });
    }
    let resized = only(SIZES);
    let evidence = evidence(volume, primary, chosen);
    let outvotes = count >= 2 || broken || lost;
    if evidence == Some(true) && (resized || !broken) {
        return Some(Judgement {
            better: None,
            outvoted: (resized && !lost && count >= agree.max(1)).then_some(Outvoted::Grown),
        });
    }
    if !(evidence == Some(false) || (outvotes && count > agree)) {
        return None;
    }
    let ag = chosen.ag;
    if !lost && ag.0 < volume.geometry().ag_count {
        let choice = Choice { copy: Some(ag.0), ..Choice::default() };
        let better = Volume::open(volume.devices().clone(), choice).ok()?;
        let better = match volume.most_steps() {
            Some(steps) => better.limited(steps),
            None => better,
        };
        return Some(Judgement { better: Some(better), outvoted: None });
    }
    let better = volume.through_copy((chosen.sb.clone(), chosen.zoned, ag))?;
    Some(Judgement { better: Some(better), outvoted: None })
}

/// Copies in AGs behind the end that the primary tells of.
fn behind<'v>(volume: &'v Volume, primary: &'v Sector) -> impl Iterator<Item = Sector> + 'v {
    let geometry = volume.geometry();
    let ag_bytes = u64::from(geometry.ag_blocks).saturating_mul(geometry.block_size());
    let ags = (geometry.ag_count..u32::MAX).take(usize::try_from(ASKED).unwrap_or(64));
    ags.map_while(move |ag| {
        let byte = ByteOffset(u64::from(ag).checked_mul(ag_bytes)?);
        let bytes = volume.read(Device::Data, byte, volume.context().sector_size, format!("sb {ag}")).ok()?.bytes;
        let uuid = primary.sb.metadata_uuid();
        Sector::new(AgNumber(ag), bytes).filter(|copy| copy.is_readable() && copy.sb.metadata_uuid() == uuid)
    })
}

/// Does what lies on disk speak for the primary, or against it and for the copy?
fn evidence(volume: &Volume, primary: &Sector, copy: &Sector) -> Option<bool> {
    let data = &*volume.devices().data;
    let of = |sector: &Sector| match Geometry::new(&sector.sb, sector.zoned) {
        Ok(geometry) => fit(data, &sector.sb, &geometry),
        Err(_) => Fit::No,
    };
    match (of(primary), of(copy)) {
        (Fit::Yes, Fit::No) => return Some(true),
        (Fit::No, Fit::Yes) => return Some(false),
        _ => {}
    }
    match (bitmap_fits(volume, &primary.sb), bitmap_fits(volume, &copy.sb)) {
        (Some(true), Some(false)) => Some(true),
        (Some(false), Some(true)) => Some(false),
        _ => None,
    }
}

fn copy_at(volume: &Volume, copy: &crate::volume::Copy) -> Option<Sector> {
    let size = copy.geometry.context.sector_size;
    Sector::new(copy.ag, volume.read(Device::Data, copy.byte, size, "sb").ok()?.bytes)
}

fn place(ag: AgNumber, length: u64) -> Place {
    Place::new(Device::Data, ByteOffset(0), length, format!("sb {ag}"))
}

/// The primary superblock: alone, and against the one in use. Gives the fields that are damaged; `None` where nothing in
/// it can be believed.
///
/// A sector that cannot be read is not damaged, and not sound either.
pub fn check_primary(ctx: &Ctx<'_>, primary: Option<&Sector>) -> Option<Vec<&'static str>> {
    let spot = header_spot(ctx, AgNumber(0), AgHeader::Superblock);
    let Some(primary) = primary else {
        let size = ctx.context().sector_size;
        if let Err(error) = ctx.volume().read(Device::Data, ByteOffset(0), size, "sb 0") {
            ctx.unreadable(&error, spot.object);
        }
        return None;
    };
    if let Some(short) = ctx.volume().shortfall() {
        let place = spot.place.field("dblocks");
        let found = format!("{} of {} bytes, up to within AG {}", short.present, short.needed, short.first_cut);
        let short = Finding::new(DEVICE_SHORT, place, found, format_args!("{} bytes", short.needed));
        ctx.report(short.about(Object::FileSystem));
    }
    if ctx.context().features.incompat & NEEDSREPAIR != 0 {
        let found = format!("{:#x}", ctx.context().features.incompat);
        ctx.raise(NEEDS_REPAIR, &spot, found, format_args!("{NEEDSREPAIR:#x} not set"));
    }
    if let Origin::Copy { reason, .. } | Origin::Inferred { reason, .. } = ctx.volume().origin() {
        ctx.raise(UNUSABLE, &spot, reason, "a superblock");
        return None;
    }
    // Through a copy it is known which fields are wrong: what a rule says of one that follows from another is left out.
    let through_copy = matches!(ctx.volume().origin(), Origin::Chosen { .. });
    let right = Sector { sb: ctx.volume().superblock().clone(), zoned: ctx.volume().zoned(), ..primary.clone() };
    let differing: Vec<&'static str> =
        if through_copy { differences(primary, &right).iter().map(|d| d.0).collect() } else { Vec::new() };
    let mut damaged: Vec<&'static str> = Vec::new();
    let field = |finding: &Finding| finding.place.field.unwrap_or(finding.rule.field);
    let mut broken = superblock::check(&primary.subject(), &spot.place);
    if through_copy {
        let right = |finding: &Finding| differing.contains(&field(finding)) || finding.rule.id == "sb-bad-crc";
        match broken.iter().any(right) {
            true => broken.retain(right),
            false => broken.truncate(1),
        }
    }
    for finding in broken {
        let last = finding.rule.id == "sb-bad-crc";
        let field = field(&finding);
        if damaged.contains(&field) {
            continue;
        }
        damaged.push(field);
        ctx.report(finding.about(spot.object));
        if last {
            return None;
        }
    }
    if through_copy {
        let said = !damaged.is_empty();
        for (name, found, right, fixed) in differences(primary, &right) {
            if fixed && !(said && differing.len() == 1) && !damaged.contains(&name) {
                ctx.report(Finding::new(PRIMARY_DIFFERS, spot.place.field(name), found, right).about(spot.object));
            }
            damaged.push(name);
        }
    }
    rest(ctx, &spot, primary);
    Some(damaged)
}

/// The copy of an AG: alone, and against the superblock in use.
///
/// What is wrong with a field of the primary was said there: such fields are left out.
pub fn check_copy(ctx: &Ctx<'_>, ag: AgNumber, damaged: &[&'static str]) {
    let spot = header_spot(ctx, ag, AgHeader::Superblock);
    let block = match ctx.volume().ag_header(ag, AgHeader::Superblock) {
        Ok(block) => block,
        Err(error) => return ctx.unreadable(&error, spot.object),
    };
    let Some(copy) = Sector::new(ag, block.bytes) else { return };
    // One damage, one finding: a field that cannot be right differs from the primary, too.
    if let Some(finding) = superblock::check(&copy.subject(), &spot.place).into_iter().next() {
        ctx.report(Finding { object: Object::Superblock(ag), ..finding });
        return;
    }
    let right = Sector { sb: ctx.volume().superblock().clone(), zoned: ctx.volume().zoned(), ..copy.clone() };
    for (name, found, right, fixed) in differences(&copy, &right) {
        // Unit and width, root and the inodes behind it are damaged together.
        let stripe = ["unit", "width", "versionnum"];
        let twin = |other: &str| {
            (stripe.contains(&name) && stripe.contains(&other)) || (name.ends_with("ino") && other == "rootino")
        };
        if !damaged.iter().any(|other| *other == name || twin(other)) {
            let rule = match (fixed, ctx.outvoted.map(Outvoted::of)) {
                (true, Some((old, rule))) if old.contains(&name) => rule,
                (true, _) => COPY_DIFFERS,
                (false, _) => COPY_OLD,
            };
            ctx.report(Finding::new(rule, spot.place.field(name), found, right).about(spot.object));
        }
    }
    marks(ctx, &spot, &copy.sb, damaged);
    rest(ctx, &spot, &copy);
    if copy.sb.features().is_v5() {
        ctx.lsn(copy.sb.lsn, || spot.clone());
    }
}

/// Marks that the kernel keeps in the primary alone, and the misplaced twin of features2.
fn marks(ctx: &Ctx<'_>, spot: &Spot, copy: &Superblock, damaged: &[&'static str]) {
    let v5 = copy.features().is_v5();
    let primary = ctx.volume().superblock().features_incompat;
    for (field, counts, wrong) in [
        ("bad_features2", v5 || copy.versionnum & 0x8000 != 0, copy.bad_features2 ^ copy.features2),
        ("features_incompat", v5, copy.features_incompat & NEEDSREPAIR & !primary),
        ("features_log_incompat", v5, copy.features_log_incompat),
    ] {
        if counts && wrong != 0 && !damaged.contains(&field) {
            let finding = Finding::new(COPY_OLD, spot.place.field(field), format!("bits {wrong:#x} differ"), "none");
            ctx.report(finding.about(spot.object));
        }
    }
}

/// Rules that hold one superblock against the other.
pub const AGAINST: &[&RuleInfo] = &[PRIMARY_DIFFERS, COPY_DIFFERS, COPY_STALE, LOG_MOVED];

/// Fields in which two superblocks differ: name, both values, and whether the kernel keeps the copies up to date.
fn differences(found: &Sector, right: &Sector) -> Vec<(&'static str, String, String, bool)> {
    let right = fields(right);
    let null = u64::MAX.to_string();
    let differing = |(name, value, fixed): (&'static str, String, bool)| {
        let (_, other, _) = right.iter().find(|(other, ..)| *other == name)?;
        // mkfs.xfs does not know these when it writes the copies.
        let unset = !fixed && name.ends_with("ino") && (value == null || *other == null);
        (*other != value && !unset).then(|| (name, value, other.clone(), fixed))
    };
    fields(found).into_iter().filter_map(differing).collect()
}

/// The sector behind the last field (`xchk_superblock_ondisk_size`).
fn rest(ctx: &Ctx<'_>, spot: &Spot, sector: &Sector) {
    let f = sector.sb.features();
    let size = if f.has_zoned() {
        304
    } else if f.has_metadir() {
        288
    } else if f.has_meta_uuid() {
        264
    } else if f.is_v5() {
        248
    } else if f.versionnum & 0x8000 != 0 {
        208
    } else if f.has_logv2() {
        200
    } else if f.has_sector() {
        196
    } else {
        193
    };
    let end = usize::try_from(ctx.context().sector_size).unwrap_or(512);
    let garbage = sector.bytes.get(size..end).and_then(|rest| rest.iter().position(|&byte| byte != 0));
    if let Some(at) = garbage {
        let byte = size.saturating_add(at);
        ctx.raise(GARBAGE, spot, format_args!("byte {byte} is not 0"), format_args!("zeros from byte {size} on"));
    }
}
