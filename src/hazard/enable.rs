//! What would happen if a realtime section were added to a file system: is it possible, what would it look like, and
//! which hazards would it bring. The registry is asked about the superblock as it would be then.

use super::geometry::size;
use super::{About, Answer, Evaluation, Facts, KERNELS, Kernel, Mount, Row, Severity};
use crate::units::{Blocks, ExtLen, RtExtent};

/// A reason for or against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Does it forbid the section?
    pub forbids: bool,
    /// In a sentence.
    pub text: String,
}

/// The section as it would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Blocks.
    pub blocks: u64,
    /// Blocks of an extent.
    pub extent_blocks: u64,
    /// Extents.
    pub extents: u64,
    /// Blocks of the bitmap: of the section, or of each group.
    pub bitmap_blocks: u64,
    /// Levels of the summary.
    pub levels: u32,
    /// Blocks of the summary: of the section, or of each group.
    pub summary_blocks: u64,
    /// Groups, with metadir.
    pub groups: Option<u64>,
}

/// A hazard that the section would bring.
#[derive(Clone, Debug)]
pub struct Brought {
    /// The row.
    pub row: &'static Row,
    /// Why.
    pub text: String,
    /// How bad at worst, over the usual kernels.
    pub severity: Severity,
    /// The usual kernels that it concerns.
    pub kernels: Vec<String>,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Enabled {
    /// Bytes that were asked for.
    pub bytes: u64,
    /// Bytes of an extent.
    pub extent_bytes: u64,
    /// Is the extent size the one that the superblock has already?
    pub extent_is_given: bool,
    /// Reasons.
    pub reasons: Vec<Reason>,
    /// The section; `None` where its sizes are impossible.
    pub geometry: Option<Geometry>,
    /// What it would bring.
    pub brought: Vec<Brought>,
    /// A size that is safe for every kernel that takes it, not above the one asked for, and its extent size; `None` where
    /// there is a section already, or no size is safe.
    pub safe: Option<(u64, u64)>,
}

impl Enabled {
    /// Is it possible?
    pub fn possible(&self) -> bool {
        self.geometry.is_some() && !self.reasons.iter().any(|reason| reason.forbids)
    }
}

/// Largest realtime extent (`XFS_MAX_RTEXTSIZE`).
const LARGEST_EXTENT: u64 = 1 << 30;
/// Most blocks of a realtime group (`XFS_MAX_RGBLOCKS`).
const MOST_GROUP_BLOCKS: u64 = (1 << 31) - 1;
/// Most realtime groups (`XFS_MAX_RGNUMBER`).
const MOST_GROUPS: u64 = (1 << 31) - 1;
/// Hazards that the size of a section brings or spares; the others come with any section.
const OF_SIZES: &[&str] = &[
    "log-too-small",
    "rt-bitmap-end-scan",
    "rt-extents-over-32bit",
    "rt-geometry-mismatch",
    "rt-runt",
    "rtgroups-geometry",
];

fn levels(extents: u64) -> u32 {
    extents.checked_ilog2().unwrap_or(0).saturating_add(1)
}

/// Works it out. `extent` is the extent size in bytes, where one was named.
pub fn enable(facts: &Facts, bytes: u64, extent: Option<u64>) -> Enabled {
    let extent_bytes = extent.unwrap_or_else(|| facts.rt_extent_bytes());
    let mut reasons = of_features(facts);
    let (geometry, of_sizes) = of_sizes(facts, bytes, extent_bytes);
    reasons.extend(of_sizes);
    let brought = geometry.filter(counts).map_or_else(Vec::new, |g| brought(facts, &g));
    let fixed = facts.rt() || facts.features.has_zoned();
    let safe = if fixed { None } else { safe(facts, bytes, extent_bytes) };
    Enabled { bytes, extent_bytes, extent_is_given: extent.is_none(), reasons, geometry, brought, safe }
}

/// What the features and the state of the file system say, whatever the size.
fn of_features(facts: &Facts) -> Vec<Reason> {
    let sb = &facts.sb;
    let mut reasons = Vec::new();
    let mut say = |forbids: bool, text: String| reasons.push(Reason { forbids, text });
    let metadir = facts.features.has_metadir();
    if facts.rt() {
        let now = size(sb.rblocks.0.saturating_mul(facts.block().max(1)));
        say(
            true,
            format!("there is a realtime section already, of {now}: it can only be grown, and its extent size stays"),
        );
    }
    if facts.features.has_zoned() {
        say(true, "the file system is zoned: its section is made by mkfs".to_owned());
    }
    for (bit, name, command) in [(2u32, "rmapbt", "-m rmapbt=0"), (4, "reflink", "-m reflink=0")] {
        if facts.v5() && facts.ro_compat(bit) && !metadir {
            say(
                true,
                format!(
                    "feature {name} forbids a section without realtime groups (growfs: EOPNOTSUPP since 5.15, and 4.8 to 6.13 refuse the mount); it cannot be taken away: make the file system anew with {command}, or with -m metadir=1 for 6.14 and later"
                ),
            );
        }
    }
    if !metadir {
        say(false, "realtime groups need the feature metadir, which cannot be added later: this would be a section without groups (no reverse mappings, no shared extents, no quota)".to_owned());
    } else {
        say(false, "the section would have realtime groups: 6.13 and later".to_owned());
    }
    if sb.qflags & 0x49 != 0 {
        if metadir {
            say(false, "quotas are on, which realtime groups take".to_owned());
        } else {
            say(
                true,
                format!(
                    "quotas are on (qflags {:#x}): growfs -r refuses (6.8 and later, 6.1.128), and a section without groups turns them off for good",
                    sb.qflags
                ),
            );
        }
    }
    reasons
}

/// Can the superblock count the blocks of the bitmap?
fn counts(g: &Geometry) -> bool {
    u32::try_from(g.bitmap_blocks).is_ok()
}

/// The section of that size, and why there can be none.
fn of_sizes(facts: &Facts, bytes: u64, extent_bytes: u64) -> (Option<Geometry>, Vec<Reason>) {
    let sb = &facts.sb;
    let block = facts.block().max(1);
    let metadir = facts.features.has_metadir();
    let mut reasons = Vec::new();
    let mut forbid = |text: String| reasons.push(Reason { forbids: true, text });
    if !(4096..=LARGEST_EXTENT).contains(&extent_bytes) || extent_bytes.checked_rem(block) != Some(0) {
        forbid(format!(
            "an extent of {extent_bytes} bytes is impossible: 4096 bytes to 1 GiB, and a multiple of the block {block}"
        ));
    }
    let extent_blocks = extent_bytes.checked_div(block).unwrap_or(0);
    let blocks = bytes.checked_div(block).unwrap_or(0);
    let extents = blocks.checked_div(extent_blocks).unwrap_or(0);
    if extents == 0 {
        forbid(format!("{} hold no extent of {}", size(bytes), size(extent_bytes)));
    }
    if metadir && facts.ro_compat(4) && extent_blocks != 1 {
        forbid(
            "with reflink a realtime extent must be one block (growfs: EOPNOTSUPP, and the mount is refused)"
                .to_owned(),
        );
    }
    let group = u64::from(sb.rgextents).saturating_mul(extent_blocks);
    if metadir && group > MOST_GROUP_BLOCKS {
        forbid(format!(
            "a realtime group has {} extents since mkfs: with {extent_blocks} blocks each that is {group} blocks, more than 2^31 - 1",
            sb.rgextents
        ));
    }
    if extents == 0 {
        return (None, reasons);
    }
    let header = if metadir { 48 } else { 0 };
    let words = block.saturating_sub(header).checked_div(4).unwrap_or(1).max(1);
    let in_one = if metadir { u64::from(sb.rgextents).max(1) } else { extents };
    let bitmap_blocks = in_one.div_ceil(words.saturating_mul(32));
    let levels = levels(in_one);
    let summary_blocks = bitmap_blocks.saturating_mul(levels.into()).div_ceil(words);
    let groups = metadir.then(|| extents.div_ceil(in_one));
    let g = Geometry { blocks, extent_blocks, extents, bitmap_blocks, levels, summary_blocks, groups };
    if groups.is_some_and(|n| n > MOST_GROUPS) {
        forbid(format!("{} realtime groups, more than 2^31 - 1 (growfs: EINVAL)", extents.div_ceil(in_one)));
    }
    if !counts(&g) {
        forbid(format!(
            "the bitmap takes {bitmap_blocks} blocks, and rbmblocks of the superblock counts up to 2^32 - 1"
        ));
    }
    let needed = bitmap_blocks.saturating_add(summary_blocks).saturating_mul(groups.unwrap_or(1));
    if needed > sb.fdblocks {
        forbid(format!("bitmap and summary take {needed} blocks of the data section, which has {} free", sb.fdblocks));
    }
    let log = u64::from(sb.logblocks.0);
    if !metadir && summary_blocks > log / 2 {
        forbid(format!(
            "the summary takes {summary_blocks} blocks, more than half of the log's {log}: growfs -r refuses (EINVAL; 6.14 and later may take it); a larger extent or log helps"
        ));
    }
    (Some(g), reasons)
}

/// The facts of the file system with that section.
fn with_section(facts: &Facts, g: &Geometry) -> Facts {
    let mut then = facts.clone();
    let sb = &mut then.sb;
    (sb.rblocks, sb.rextents, sb.frextents) = (Blocks(g.blocks), RtExtent(g.extents), g.extents);
    sb.rextsize = u32::try_from(g.extent_blocks).unwrap_or(u32::MAX);
    sb.rbmblocks = ExtLen(u32::try_from(g.bitmap_blocks).unwrap_or(u32::MAX));
    sb.rextslog = u8::try_from(g.extents.checked_ilog2().unwrap_or(0)).unwrap_or(u8::MAX);
    if let Some(groups) = g.groups {
        sb.rgcount = u32::try_from(groups).unwrap_or(u32::MAX);
        // Recomputed with the extent size (`xfs_mount_sb_set_rextsize`).
        let group = u64::from(sb.rgextents).saturating_mul(g.extent_blocks);
        let log = group.saturating_sub(1).checked_ilog2().map_or(0, |log| log.saturating_add(1));
        sb.rgblklog = u8::try_from(log).unwrap_or(u8::MAX);
    }
    then.rt_bytes = Some(g.blocks.saturating_mul(facts.block()));
    // What was looked at is the file system of now.
    then.deep = None;
    then
}

fn brought(facts: &Facts, g: &Geometry) -> Vec<Brought> {
    let then = with_section(facts, g);
    let (before, after) = (Evaluation::new(facts), Evaluation::new(&then));
    let mut out = Vec::new();
    for (row, answer) in after.answers.iter().filter(|(row, _)| row.about == About::Kernel) {
        let Answer::Yes(evidence) = answer else { continue };
        if matches!(before.answer(row.id), Some(Answer::Yes(_))) || row.id == "rt-device-needed" {
            continue;
        }
        let mut kernels = Vec::new();
        let mut worst: Option<Severity> = None;
        for version in KERNELS {
            let kernel = Kernel::upstream(version);
            // What refuses the file system as it is brings nothing new.
            let mounts = before.verdict(&kernel).mount != Mount::Refused;
            if let Some(effect) = after.effect(row, &kernel).filter(|_| mounts) {
                kernels.push(kernel.name.clone());
                worst = worst.max(Some(effect.severity));
            }
        }
        if let Some(severity) = worst {
            out.push(Brought { row, text: evidence.text.clone(), severity, kernels });
        }
    }
    out.sort_by_key(|one| std::cmp::Reverse(one.severity));
    out
}

/// A size up to the one asked for, and an extent size, that are possible and bring no hazard of theirs: a larger extent
/// rather than a smaller section, since those take less bitmap, summary and log.
fn safe(facts: &Facts, bytes: u64, extent_bytes: u64) -> Option<(u64, u64)> {
    let block = facts.block().max(1);
    let whole = |extent: u64| extent.clamp(4096, LARGEST_EXTENT).checked_next_multiple_of(block);
    let mut firsts = vec![whole(extent_bytes)?];
    // Groups have so many extents since mkfs: what the superblock has fits them.
    firsts.extend(facts.features.has_metadir().then(|| whole(facts.rt_extent_bytes())).flatten());
    let mut bytes = bytes;
    while bytes >= 4096 {
        for &first in &firsts {
            let mut extent = first;
            while extent <= LARGEST_EXTENT {
                if let Some(found) = [0u64, 1].iter().find_map(|&less| without_hazards(facts, bytes, extent, less)) {
                    return Some(found);
                }
                extent = extent.checked_mul(2)?;
            }
        }
        bytes /= 2;
    }
    None
}

/// That size, or in whole extents `less` fewer, where it is possible and brings nothing.
fn without_hazards(facts: &Facts, bytes: u64, extent: u64, less: u64) -> Option<(u64, u64)> {
    let bytes = match less {
        0 => bytes,
        _ => bytes.checked_div(extent)?.checked_sub(less)?.checked_mul(extent)?,
    };
    let (geometry, reasons) = of_sizes(facts, bytes, extent);
    let g = geometry.filter(|_| reasons.is_empty())?;
    // More than 2^32 extents break kernels and tools before 6.8, a full bitmap kernels before 5.10: avoided even where no
    // such kernel takes the file system.
    let full = g.extents.checked_rem(facts.bits_per_block().max(1)) == Some(0);
    if !facts.features.has_metadir() && (full || g.extents > u64::from(u32::MAX)) {
        return None;
    }
    let armed = |one: &Brought| one.severity >= Severity::Refuse && OF_SIZES.contains(&one.row.id);
    (!brought(facts, &g).iter().any(armed)).then_some((bytes, extent))
}
