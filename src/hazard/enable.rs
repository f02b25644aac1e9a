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
    /// A size that is safe for every kernel that takes it, not above the one asked for.
    pub safe: Option<(u64, u64)>,
}

impl Enabled {
    /// Is it possible?
    pub fn possible(&self) -> bool {
        self.geometry.is_some() && !self.reasons.iter().any(|reason| reason.forbids)
    }
}

fn levels(extents: u64) -> u32 {
    extents.checked_ilog2().unwrap_or(0).saturating_add(1)
}

/// Works it out. `extent` is the extent size in bytes, where one was named.
pub fn enable(facts: &Facts, bytes: u64, extent: Option<u64>) -> Enabled {
    let sb = &facts.sb;
    let block = facts.block().max(1);
    let extent_bytes = extent.unwrap_or_else(|| facts.rt_extent_bytes());
    let mut reasons = Vec::new();
    let mut say = |forbids: bool, text: String| reasons.push(Reason { forbids, text });
    let metadir = facts.features.has_metadir();
    if facts.rt() {
        let now = size(sb.rblocks.0.saturating_mul(block));
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
    if !(4096..=1 << 30).contains(&extent_bytes) || extent_bytes.checked_rem(block) != Some(0) {
        say(
            true,
            format!(
                "an extent of {extent_bytes} bytes is impossible: 4096 bytes to 1 GiB, and a multiple of the block {block}"
            ),
        );
    }
    let extent_blocks = extent_bytes.checked_div(block).unwrap_or(0);
    let blocks = bytes.checked_div(block).unwrap_or(0);
    let extents = blocks.checked_div(extent_blocks).unwrap_or(0);
    if extents == 0 {
        say(true, format!("{} hold no extent of {}", size(bytes), size(extent_bytes)));
    }
    if metadir && facts.ro_compat(4) && extent_blocks != 1 {
        say(
            true,
            "with reflink a realtime extent must be one block (growfs: EOPNOTSUPP, and the mount is refused)"
                .to_owned(),
        );
    }
    let group = u64::from(sb.rgextents).saturating_mul(extent_blocks);
    if metadir && group > (1 << 31) - 1 {
        say(
            true,
            format!(
                "a realtime group has {} extents since mkfs: with {extent_blocks} blocks each that is {group} blocks, more than 2^31 - 1",
                sb.rgextents
            ),
        );
    }
    let geometry = (extents > 0).then(|| {
        let header = if metadir { 48 } else { 0 };
        let words = block.saturating_sub(header).checked_div(4).unwrap_or(1).max(1);
        let in_one = if metadir { u64::from(sb.rgextents).max(1) } else { extents };
        let bitmap_blocks = in_one.div_ceil(words.saturating_mul(32));
        let levels = levels(in_one);
        let summary_blocks = bitmap_blocks.saturating_mul(levels.into()).div_ceil(words);
        let groups = metadir.then(|| extents.div_ceil(in_one));
        Geometry { blocks, extent_blocks, extents, bitmap_blocks, levels, summary_blocks, groups }
    });
    if let Some(g) = &geometry {
        let needed = g.bitmap_blocks.saturating_add(g.summary_blocks).saturating_mul(g.groups.unwrap_or(1));
        if needed > sb.fdblocks {
            say(
                true,
                format!("bitmap and summary take {needed} blocks of the data section, which has {} free", sb.fdblocks),
            );
        }
        let log = u64::from(sb.logblocks.0);
        if !metadir && g.summary_blocks > log / 2 {
            say(
                true,
                format!(
                    "the summary takes {} blocks, more than half of the log's {log}: growfs -r refuses (EINVAL; 6.14 and later may take it); a larger extent or log helps",
                    g.summary_blocks
                ),
            );
        }
    }
    let brought = geometry.map_or_else(Vec::new, |g| brought(facts, &g));
    let safe = geometry.and_then(|g| safe(facts, &g, block));
    Enabled { bytes, extent_bytes, extent_is_given: extent.is_none(), reasons, geometry, brought, safe }
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

/// The largest size up to the one asked for, and the extent size, that arm nothing.
fn safe(facts: &Facts, g: &Geometry, block: u64) -> Option<(u64, u64)> {
    let bits = facts.bits_per_block().max(1);
    let mut extent_blocks = g.extent_blocks;
    let mut extents = g.extents;
    // More than 2^32 extents break kernels and tools before 6.8.
    while extents > u64::from(u32::MAX) && extent_blocks.saturating_mul(block) < 1 << 30 {
        extent_blocks = extent_blocks.saturating_mul(2);
        extents = g.blocks.checked_div(extent_blocks)?;
    }
    if !facts.features.has_metadir() && extents.checked_rem(bits) == Some(0) {
        extents = extents.saturating_sub(1);
    }
    let bytes = extents.checked_mul(extent_blocks)?.checked_mul(block)?;
    (extents > 0).then_some((bytes, extent_blocks.saturating_mul(block)))
}
