//! One group: its bitmap and summary, their inodes and blocks, and one against the other.

use super::{Observer, Order, Part, Section, Sink, rules};
use crate::check::RuleInfo;
use crate::error::{Error, Place};
use crate::format::checksum::{self, CrcState};
use crate::format::dinode::{Fork, flags, fork_format, metatype};
use crate::format::dinode_view::Kind;
use crate::format::rtbitmap::{self, ByteOrder, CRC_OFFSET, RtBlockHeader};
use crate::format::{Structure, rtsummary};
use crate::units::{ByteOffset, Device};
use crate::walk::InodeBlock;
use crate::walk::metadir::GroupFile;
use crate::walk::rt::bitmap::{Count, Pass, Run, scan};
use crate::walk::rt::meta::{MetaFile, Missing, Piece};
use crate::walk::rt::summary::{Cell, Disk, Histogram, Tally, Told};
use crate::walk::rt::{self, Group};
use std::collections::HashMap;

/// A metadata file of a group, as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The inode.
    pub ino: u64,
    /// Where it lies.
    pub place: Place,
    /// Size in bytes, as stored.
    pub size: i64,
    /// Extents of its map.
    pub extents: u64,
    /// First byte of its first block on the data device.
    pub first_byte: Option<u64>,
    /// Access time: the sequence number of the bitmap, as stored.
    pub sequence: u64,
}

/// What was seen of a group.
#[derive(Clone, Debug)]
pub struct Report {
    /// The group.
    pub group: Group,
    /// Its bitmap, where it has one that can be used.
    pub bitmap: Option<File>,
    /// Its summary, likewise.
    pub summary: Option<File>,
    /// Free and used.
    pub count: Count,
    /// Free runs by power of two.
    pub histogram: Histogram,
    /// Words of the summary, by level, as stored.
    pub disk_levels: [u64; 64],
    /// Words of the summary that differ from the bitmap and should not.
    pub differ: u64,
    /// Words that differ only because of bits behind the last extent.
    pub excused: u64,
    /// Was all of bitmap and summary there?
    pub complete: bool,
    /// Reverse mappings: the btree.
    pub rmap: Option<super::btrees::TreeReport>,
    /// Shared extents: the btree.
    pub refcount: Option<super::btrees::TreeReport>,
    /// The zone, on zoned sections.
    pub zone: Option<super::btrees::Zone>,
}

impl Report {
    /// Was there nothing at all?
    pub fn is_absent(&self) -> bool {
        self.bitmap.is_none() && self.summary.is_none() && self.rmap.is_none() && self.refcount.is_none()
    }
}

/// The rules that bitmap and summary have in common.
struct FileKind {
    file: GroupFile,
    magic: u32,
    metatype: u16,
    inode: &'static RuleInfo,
    size: &'static RuleInfo,
    flags: &'static RuleInfo,
    hole: &'static RuleInfo,
    unwritten: &'static RuleInfo,
    outside: &'static RuleInfo,
    beyond: &'static RuleInfo,
    unreadable: &'static RuleInfo,
    bad_magic: &'static RuleInfo,
    crc: &'static RuleInfo,
    owner: &'static RuleInfo,
    blkno: &'static RuleInfo,
    uuid: &'static RuleInfo,
}

const BITMAP: FileKind = FileKind {
    file: GroupFile::Bitmap,
    magic: rtbitmap::MAGIC,
    metatype: metatype::RTBITMAP,
    inode: rules::BITMAP_INODE,
    size: rules::BITMAP_SIZE,
    flags: rules::BITMAP_FLAGS,
    hole: rules::BITMAP_HOLE,
    unwritten: rules::BITMAP_UNWRITTEN,
    outside: rules::BITMAP_OUTSIDE,
    beyond: rules::BITMAP_BEYOND,
    unreadable: rules::BITMAP_UNREADABLE,
    bad_magic: rules::BITMAP_MAGIC,
    crc: rules::BITMAP_CRC,
    owner: rules::BITMAP_OWNER,
    blkno: rules::BITMAP_BLKNO,
    uuid: rules::BITMAP_UUID,
};
const SUMMARY: FileKind = FileKind {
    file: GroupFile::Summary,
    magic: rtsummary::MAGIC,
    metatype: metatype::RTSUMMARY,
    inode: rules::SUMMARY_INODE,
    size: rules::SUMMARY_SIZE,
    flags: rules::SUMMARY_FLAGS,
    hole: rules::SUMMARY_HOLE,
    unwritten: rules::SUMMARY_UNWRITTEN,
    outside: rules::SUMMARY_OUTSIDE,
    beyond: rules::SUMMARY_BEYOND,
    unreadable: rules::SUMMARY_UNREADABLE,
    bad_magic: rules::SUMMARY_MAGIC,
    crc: rules::SUMMARY_CRC,
    owner: rules::SUMMARY_OWNER,
    blkno: rules::SUMMARY_BLKNO,
    uuid: rules::SUMMARY_UUID,
};

/// What a group's file is called in places.
pub fn file_name(section: &Section<'_>, group: &Group, file: GroupFile) -> String {
    match section.rt.groups {
        Some(_) => format!("rtgroup {} › {}", group.number, file.name()),
        None => format!("rt{}", file.name()),
    }
}

/// Opens a file of a group, and raises what is wrong with its inode.
fn open(section: &Section<'_>, group: &Group, kind: &FileKind, sink: &mut Sink<'_>) -> Option<MetaFile> {
    let walk = section.walk;
    let mut errors = Vec::new();
    let block = rt::inode(walk, group.number, kind.file, &mut |error| errors.push(error));
    let block = match block {
        Ok(block) => block,
        Err(error) if !sink.not_found(kind.inode, kind.unreadable, &errors, &error) => return None,
        Err(error) => {
            let name = file_name(section, group, kind.file);
            let place = match &error {
                Error::Corrupt { place, .. } => (**place).clone(),
                _ => Place::new(Device::Data, ByteOffset(0), 512, name),
            };
            sink.raise(kind.inode, place, error, "an inode");
            return None;
        }
    };
    for error in errors {
        sink.error(rules::GROUP_FILE, kind.unreadable, &error);
    }
    if sink.is_damaged(block.inode().ino) {
        return None;
    }
    inode_rules(section, group, kind, &block, sink);
    let mut errors = Vec::new();
    let file = MetaFile::new(walk, block, &mut |error| errors.push(error));
    for error in errors {
        sink.error(kind.inode, kind.unreadable, &error);
    }
    Some(file)
}

fn inode_rules(section: &Section<'_>, group: &Group, kind: &FileKind, block: &InodeBlock, sink: &mut Sink<'_>) {
    let (inode, place) = (block.inode(), block.place());
    let bitmap = kind.file == GroupFile::Bitmap;
    if let CrcState::Bad { computed } = inode.crc() {
        sink.raise(kind.inode, place.field("crc"), "checksum does not match", crate::format::Crc(computed));
    }
    if inode.nlink() == 0 {
        sink.raise(kind.inode, place.field("core.nlink"), "no links", "1 link");
    }
    let format = inode.format(Fork::Data);
    if inode.kind() != Kind::Regular || !matches!(format, fork_format::EXTENTS | fork_format::BTREE) {
        let found = format!("{}, format {format}", inode.kind().name());
        sink.raise(kind.inode, place.field("core.format"), found, "a regular file with extents or btree");
    }
    let wrong = inode.flags() & (flags::REALTIME | flags::RTINHERIT | flags::EXTSIZE | flags::EXTSZINHERIT);
    let sequence = inode.flags() & flags::NEWRTBM != 0;
    if wrong != 0 || (sequence && !bitmap) {
        let names: Vec<&str> = inode.flag_names().collect();
        sink.raise(kind.flags, place.field("core.flags"), names.join(" "), "none of the realtime and hint flags");
    }
    if bitmap && section.rt.groups.is_none() && !sequence {
        sink.raise(rules::BITMAP_SEQUENCE, place.field("core.newrtbm"), 0, 1);
    }
    if section.rt.groups.is_some() && inode.metatype() != Some(kind.metatype) {
        let found = inode.metatype().map_or("no metadata file".to_owned(), |n| n.to_string());
        sink.raise(rules::GROUP_TYPE, place.field("core.metatype"), found, kind.metatype);
    }
    // Without groups, too: the section is group 0 to `xfs_rtginode_load`.
    if inode.projid() != group.number.0 {
        sink.raise(rules::GROUP_NUMBER, place.field("core.projid"), inode.projid(), group.number);
    }
    let sizes = &section.sizes;
    let blocks = if bitmap { sizes.bitmap_blocks } else { sizes.summary_blocks };
    let size = section.walk.geometry().block_size();
    let least = blocks.saturating_mul(size);
    let found = u64::try_from(inode.size()).ok();
    let fits = found.is_some_and(|n| n >= least && n.checked_rem(size) == Some(0));
    if !fits {
        sink.raise(
            kind.size,
            place.field("core.size"),
            inode.size(),
            format_args!("at least {least} bytes, whole blocks"),
        );
    }
}

fn describe(file: &MetaFile, section: &Section<'_>) -> File {
    let inode = file.inode();
    let first = file.extents().first().and_then(|extent| section.walk.geometry().block_byte(extent.startblock));
    File {
        ino: inode.ino.0,
        place: file.place().clone(),
        size: inode.size(),
        extents: u64::try_from(file.extents().len()).unwrap_or(u64::MAX),
        first_byte: first.map(|byte| byte.0),
        sequence: crate::format::bits::be64(inode.bytes(), 32).unwrap_or(0),
    }
}

/// Raises what is wrong with a piece of bitmap or summary: missing blocks, headers. Do its words mean something?
fn piece_rules(
    section: &Section<'_>,
    name: &str,
    kind: &FileKind,
    file: &MetaFile,
    piece: &Piece<'_>,
    sink: &mut Sink<'_>,
) -> bool {
    match piece {
        Piece::Missing { first, blocks, why } => {
            let place = Place { structure: format!("{name} block {first}"), ..file.place().clone() };
            let many = if *blocks > 1 { format!("{blocks} blocks from {first} on") } else { format!("block {first}") };
            match why {
                Missing::Hole => sink.raise(kind.hole, place, format_args!("{many}: no extent"), "a mapped block"),
                Missing::Unwritten(e) => {
                    let found = format!("{many}: [{},{},{},1]", e.startoff, e.startblock, e.blockcount);
                    sink.raise(kind.unwritten, place, found, "a written extent");
                }
                Missing::Outside(e) => {
                    let found = format!("{many}: [{},{},{}]", e.startoff, e.startblock, e.blockcount);
                    sink.raise(kind.outside, place, found, "blocks within one AG");
                }
                Missing::Unreadable(error) => sink.error(kind.outside, kind.unreadable, error),
            }
            false
        }
        Piece::Blocks { first, byte, bytes } if rtbitmap::has_header(section.walk.context()) => {
            let size = section.walk.geometry().block_size();
            let chunk = usize::try_from(size).unwrap_or(usize::MAX).max(1);
            let mut sound = true;
            for (i, block) in (0u64..).zip(bytes.chunks(chunk)) {
                let byte = byte.saturating_add(i.saturating_mul(size));
                let place = || {
                    let name = format!("{name} block {}", first.saturating_add(i));
                    Place::new(Device::Data, ByteOffset(byte), size, name)
                };
                sound &= header_rules(section, kind, file, (byte, block), &place, sink);
            }
            sound
        }
        Piece::Blocks { .. } => true,
    }
}

/// Can a kernel not read this piece of a bitmap (`xfs_rtbuf_get`)?
pub fn is_unreadable_bitmap(section: &Section<'_>, file: &MetaFile, piece: &Piece<'_>) -> bool {
    let mut faults = 0u32;
    let mut keep = |_: crate::check::Finding| faults = faults.saturating_add(1);
    piece_rules(section, "", &BITMAP, file, piece, &mut Sink::new(&mut keep));
    faults > 0
}

/// Have the blocks of a piece of the bitmap the right magic and checksum? Said it was before.
pub(super) fn is_bitmap(section: &Section<'_>, piece: &Piece<'_>) -> bool {
    let Piece::Blocks { bytes, .. } = piece else { return false };
    let size = usize::try_from(section.walk.geometry().block_size()).unwrap_or(usize::MAX).max(1);
    let right = |block: &[u8]| {
        let header = RtBlockHeader::decode(block);
        header.is_some_and(|header| header.magicnum == BITMAP.magic)
            && !matches!(checksum::verify(block, CRC_OFFSET), CrcState::Bad { .. })
    };
    !rtbitmap::has_header(section.walk.context()) || bytes.chunks(size).all(right)
}

/// `xfs_rtbuf_verify`, and the owner that `xfs_rtbuf_get` looks at. Is the block one whose words mean something?
fn header_rules(
    section: &Section<'_>,
    kind: &FileKind,
    file: &MetaFile,
    (byte, block): (u64, &[u8]),
    place: &dyn Fn() -> Place,
    sink: &mut Sink<'_>,
) -> bool {
    let Some(header) = RtBlockHeader::decode(block) else { return false };
    if header.magicnum != kind.magic {
        let (found, right) = (format!("{:#x}", header.magicnum), format!("{:#x}", kind.magic));
        sink.raise(kind.bad_magic, place(), found, right);
        return false;
    }
    if let CrcState::Bad { computed } = checksum::verify(block, CRC_OFFSET) {
        sink.raise(kind.crc, place(), header.crc, crate::format::Crc(computed));
        return false;
    }
    let ino = file.inode().ino;
    if header.owner != ino {
        sink.raise(kind.owner, place(), header.owner, ino);
    }
    let right = section.walk.geometry().daddr(ByteOffset(byte)).0;
    if header.blkno != right {
        sink.raise(kind.blkno, place(), header.blkno, right);
    }
    sink.lsn(header.lsn, place);
    let uuid = section.walk.volume().superblock().metadata_uuid();
    if header.uuid != uuid {
        sink.raise(kind.uuid, place(), header.uuid, uuid);
    }
    true
}

/// Words behind the last counter, in the last block.
fn summary_tail(section: &Section<'_>, name: &str, piece: &Piece<'_>, sink: &mut Sink<'_>) {
    let Piece::Blocks { first, byte, bytes } = piece else { return };
    let sizes = &section.sizes;
    let words = u64::from(sizes.levels).saturating_mul(sizes.bitmap_blocks);
    let (Some(block), Some(within)) =
        (words.checked_div(sizes.words_per_block), words.checked_rem(sizes.words_per_block))
    else {
        return;
    };
    // The last block is full, or it is not here.
    let Some(skipped) = block.checked_sub(*first).filter(|_| within > 0) else { return };
    let size = section.walk.geometry().block_size();
    let header = u64::try_from(rtbitmap::first_word(section.walk.context())).unwrap_or(0);
    let at = skipped.saturating_mul(size);
    let from = at.saturating_add(header).saturating_add(within.saturating_mul(4));
    let range =
        usize::try_from(from).unwrap_or(usize::MAX)..usize::try_from(at.saturating_add(size)).unwrap_or(usize::MAX);
    let Some(tail) = bytes.get(range) else { return };
    if let Some(odd) = tail.iter().position(|&b| b != 0) {
        let word = u64::try_from(odd / 4).unwrap_or(0);
        let byte = ByteOffset(byte.saturating_add(from).saturating_add(word.saturating_mul(4)));
        let name = format!("{name} block {block} › suminfo[{}]", within.saturating_add(word));
        let count = tail.chunks(4).filter(|word| word.iter().any(|&b| b != 0)).count();
        let found = format!("{count} words that are not zero, from here on");
        sink.raise(rules::SUMMARY_TAIL, Place::new(Device::Data, byte, 4, name), found, "zeros");
    }
}

/// Blocks behind the end of the file.
fn beyond_size(section: &Section<'_>, kind: &FileKind, file: &MetaFile, sink: &mut Sink<'_>) {
    let size = section.walk.geometry().block_size();
    let blocks = u64::try_from(file.inode().size()).unwrap_or(0).div_ceil(size.max(1));
    let last = file.extents().last().map(|e| e.startoff.0.saturating_add(u64::from(e.blockcount)));
    if let Some(end) = last.filter(|&end| end > blocks) {
        sink.raise(
            kind.beyond,
            file.place().field("u3.bmx.startoff"),
            format_args!("blocks to {end}"),
            format_args!("blocks to {blocks}"),
        );
    }
}

/// How many words of the summary change when bits behind the last extent count as extents. Only the last free run and
/// the last block of the bitmap are concerned.
fn tail_excuses(section: &Section<'_>, group: &Group, file: &MetaFile) -> HashMap<(u32, u64), i64> {
    let mut deltas = HashMap::new();
    let per_block = section.sizes.extents_per_block();
    let Some(last) = group.extents.checked_sub(1).and_then(|x| x.checked_div(per_block)) else { return deltas };
    let all = last.saturating_add(1).saturating_mul(per_block);
    let longer = Group { extents: all, ..*group };
    let mut collect = |group: &Group, sign: i64| {
        let pass = Pass { group, file, sizes: &section.sizes, order: section.order.order() };
        let mut each = |run: Run| {
            if let Run::Free { start, extents } = run
                && start.saturating_add(extents) >= group.extents.min(last.saturating_mul(per_block))
            {
                let key = (extents.checked_ilog2().unwrap_or(0), start.checked_div(per_block).unwrap_or(0));
                let delta = deltas.entry(key).or_insert(0i64);
                *delta = delta.saturating_add(sign);
            }
        };
        scan(section.walk, &pass, &mut each, &mut |_| true);
    };
    collect(group, -1);
    collect(&longer, 1);
    deltas
}

/// Checks bitmap and summary of a group, and tells the observer what they hold.
pub fn check(section: &Section<'_>, group: &Group, observer: &mut dyn Observer, sink: &mut Sink<'_>) -> Report {
    let mut report = Report {
        group: *group,
        bitmap: None,
        summary: None,
        count: Count::default(),
        histogram: Histogram::default(),
        disk_levels: [0; 64],
        differ: 0,
        excused: 0,
        complete: true,
        rmap: None,
        refcount: None,
        zone: None,
    };
    if section.has_bitmap() {
        bitmaps(section, group, observer, sink, &mut report);
    }
    super::btrees::describe(section, group, &mut report, sink);
    report
}

/// The files of a group, each by itself.
pub fn verify(section: &Section<'_>, group: &Group, sink: &mut Sink<'_>) {
    let files = [
        (GroupFile::Bitmap, section.has_bitmap()),
        (GroupFile::Summary, section.has_bitmap()),
        (GroupFile::Rmap, section.has_rmap()),
        (GroupFile::Refcount, section.has_reflink()),
    ];
    for (file, _) in files.into_iter().filter(|(_, wanted)| *wanted) {
        if let Ok(block) = rt::inode(section.walk, group.number, file, &mut |_| {}) {
            sink.verify(block.inode(), Part::Whole);
        }
    }
}

fn bitmaps(
    section: &Section<'_>,
    group: &Group,
    observer: &mut dyn Observer,
    sink: &mut Sink<'_>,
    report: &mut Report,
) {
    let walk = section.walk;
    let bitmap = open(section, group, &BITMAP, sink);
    let summary = open(section, group, &SUMMARY, sink);
    report.bitmap = bitmap.as_ref().map(|file| describe(file, section));
    report.summary = summary.as_ref().map(|file| describe(file, section));
    let order = section.order.order();
    if let Some(file) = &summary {
        beyond_size(section, &SUMMARY, file, sink);
        let name = file_name(section, group, GroupFile::Summary);
        file.each(walk, 0, section.sizes.summary_blocks, &mut |piece| {
            report.complete &= piece_rules(section, &name, &SUMMARY, file, &piece, sink);
            summary_tail(section, &name, &piece, sink);
            true
        });
    }
    let Some(file) = bitmap.as_ref().filter(|_| !section.order_in_doubt) else {
        report.complete = false;
        report.count.unknown = group.extents;
        return;
    };
    beyond_size(section, &BITMAP, file, sink);
    let mut tally = summary.as_ref().map(|file| Tally::new(walk, Disk { file, order }, section.sizes));
    let name = file_name(section, group, GroupFile::Bitmap);
    let mut differing: Vec<Cell> = Vec::new();
    let mut more = 0u64;
    let observed = std::cell::RefCell::new(observer);
    let mut told = |told: Told| {
        match &told {
            Told::Differs(cell) if differing.len() < MOST_CELLS => differing.push(*cell),
            Told::Differs(_) => more = more.saturating_add(1),
            _ => {}
        }
        observed.borrow_mut().summary(group, &told);
    };
    let pass = Pass { group, file, sizes: &section.sizes, order };
    let mut histogram = Histogram::default();
    let mut each = |run: Run| {
        observed.borrow_mut().run(group, run);
        if let Run::Free { start, extents } = run {
            histogram.add(extents);
            if let Some(tally) = &mut tally {
                tally.add(start, extents, &mut told);
            }
        }
    };
    report.count = scan(walk, &pass, &mut each, &mut |piece| piece_rules(section, &name, &BITMAP, file, piece, sink));
    if let Some(tally) = &mut tally {
        tally.finish(&mut told);
        report.disk_levels = tally.disk_levels;
        report.complete &= tally.missing == 0;
    }
    report.histogram = histogram;
    report.complete &= report.count.unknown == 0 && tally.is_some();
    if report.count.beyond > 0 {
        let found = format!("{} bits behind extent {}", report.count.beyond, group.extents.saturating_sub(1));
        sink.raise(rules::BITMAP_TAIL, file.place().clone(), found, "none");
    }
    let Some(summary) = &summary else { return };
    if !report.complete {
        if !differing.is_empty() {
            sink.raise(rules::SUMMARY_NOT_COMPARED, summary.place().clone(), "parts are missing", "all of both");
        }
        return;
    }
    let excuses = match (report.count.beyond, differing.is_empty()) {
        (1.., false) => tail_excuses(section, group, file),
        _ => HashMap::new(),
    };
    for cell in differing {
        let delta = excuses.get(&(cell.level, cell.block)).copied().unwrap_or(0);
        if delta != 0 && i64::from(cell.computed).saturating_add(delta) == i64::from(cell.disk) {
            report.excused = report.excused.saturating_add(1);
            continue;
        }
        report.differ = report.differ.saturating_add(1);
        let (place, what) = cell_place(section, group, summary, &cell);
        sink.raise(rules::SUMMARY_DIFFERS, place, format_args!("{} ({what})", cell.disk), cell.computed);
    }
    report.differ = report.differ.saturating_add(more);
}

/// Words of a summary that are kept to be reported.
const MOST_CELLS: usize = 4096;

/// The place of a word of the summary, and what it counts.
fn cell_place(section: &Section<'_>, group: &Group, summary: &MetaFile, cell: &Cell) -> (Place, String) {
    let sizes = &section.sizes;
    let word = rtsummary::word_index(cell.level, cell.block, sizes.bitmap_blocks).unwrap_or(0);
    let per_block = sizes.words_per_block.max(1);
    let (block, within) = (word.checked_div(per_block).unwrap_or(0), word.checked_rem(per_block).unwrap_or(0));
    let name = file_name(section, group, GroupFile::Summary);
    let mut place = summary.block_place(section.walk, block, &name);
    let header = u64::try_from(rtbitmap::first_word(section.walk.context())).unwrap_or(0);
    let skip = within.saturating_mul(4).saturating_add(header);
    place.byte = place.byte.checked_add(skip).unwrap_or(place.byte);
    place.length = 4;
    place.structure = format!("{} › suminfo[{within}]", place.structure);
    (place, format!("runs of 2^{} from bitmap block {}", cell.level, cell.block))
}

/// In which order the words of a classic section are. A count is at most half the bits of a bitmap block, and bytes
/// swapped it is far more, so the summary alone tells, unless it is empty; then bitmap and summary are compared. The second
/// value: is the order one that was assumed, and not all could be read?
pub fn find_order(section: &Section<'_>) -> (Order, bool) {
    let unread = std::cell::Cell::new(false);
    let note = |error: &Error| unread.set(unread.get() || !matches!(error, Error::Corrupt { .. }));
    let open = |file| {
        let block = rt::inode(section.walk, crate::units::RgNumber(0), file, &mut |error| note(&error));
        Some(MetaFile::new(section.walk, block.inspect_err(note).ok()?, &mut |error| note(&error)))
    };
    let (Some(file), Some(summary)) = (open(GroupFile::Bitmap), open(GroupFile::Summary)) else {
        return (Order::Assumed(ByteOrder::Little), unread.get());
    };
    let missing = |piece: &Piece<'_>| {
        if let Piece::Missing { why: Missing::Unreadable(error), .. } = piece {
            note(error);
        }
    };

    let most = section.sizes.extents_per_block().div_ceil(2);
    let (mut little, mut big) = (0u64, 0u64);
    summary.each(section.walk, 0, section.sizes.summary_blocks, &mut |piece| {
        missing(&piece);
        if let Piece::Blocks { bytes, .. } = piece {
            for &raw in bytes.as_chunks::<4>().0 {
                little = little.saturating_add(u64::from(u64::from(u32::from_le_bytes(raw)) > most));
                big = big.saturating_add(u64::from(u64::from(u32::from_be_bytes(raw)) > most));
            }
        }
        true
    });
    // Damage in a few words does not hide the order of the many.
    if big > little.saturating_mul(4) {
        return (Order::Agrees(ByteOrder::Little), false);
    }
    if little > big.saturating_mul(4) {
        return (Order::Agrees(ByteOrder::Big), false);
    }
    file.each(section.walk, 0, section.sizes.bitmap_blocks, &mut |piece| {
        missing(&piece);
        true
    });
    if unread.get() {
        return (Order::Assumed(ByteOrder::Little), true);
    }
    let differ = |order| differing(section, &file, &summary, order);
    let order = match (differ(ByteOrder::Little), differ(ByteOrder::Big)) {
        (0, 1..) => Order::Agrees(ByteOrder::Little),
        (1.., 0) => Order::Agrees(ByteOrder::Big),
        _ => Order::Assumed(ByteOrder::Little),
    };
    (order, false)
}

/// Words of the summary that differ from the bitmap, both read in `order`.
fn differing(section: &Section<'_>, file: &MetaFile, summary: &MetaFile, order: ByteOrder) -> u64 {
    let Some(group) = rt::group(section.rt, crate::units::RgNumber(0)) else { return 0 };
    let mut tally = Tally::new(section.walk, Disk { file: summary, order }, section.sizes);
    let pass = Pass { group: &group, file, sizes: &section.sizes, order };
    let mut each = |run: Run| {
        if let Run::Free { start, extents } = run {
            tally.add(start, extents, &mut |_| {});
        }
    };
    scan(section.walk, &pass, &mut each, &mut |_| true);
    tally.finish(&mut |_| {});
    tally.differ
}
