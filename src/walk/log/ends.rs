//! Head and tail: `xlog_find_head`, `xlog_find_tail` and what they call (xfs_log_recover.c).
//!
//! Every block carries the cycle that wrote it, so the log reads x+1 … x+1 x … x, and the head is where x begins.
//! A few records may have been under way at once when the machine stopped, so up to 2 MiB before that point may have
//! holes of older cycles, and the last record may be cut.

use super::blocks::{LARGE, LogBlocks, SMALL};
use super::{Area, Ends, Log, State, Unknown};
use crate::format::Structure;
use crate::format::log::{self, BIG_RECORD, MAX_ICLOGS, MAX_RECORD, OP_UNMOUNT, OpHeader, RecordHeader};
use crate::format::on_disk::Uuid;
use crate::units::{LogBlock, Lsn};
use crate::volume::Volume;

/// Block looked at first in a young log, where the superblock gives no better: logs that were hardly used are common.
const YOUNG: u32 = 1024;

/// Most blocks that an unmount record takes: padded to the largest log stripe unit.
const UNMOUNT_BLOCKS: u32 = 1024;

/// What is known when the head is.
struct Head {
    head: u32,
    /// First block that the cycle numbers gave, before a cut record was taken back.
    by_cycle: u32,
    zeroed: bool,
}

/// Finds out what the log is like. Reads at most a few MiB of a sound log, and never trusts a length.
pub fn state(volume: &Volume) -> Log {
    find(volume, false)
}

/// Like [`state`], but where the cycle numbers lead to an unmount record it does not look for holes before it: an
/// unmount record is written when all others are on disk. A few pieces of a clean log are read, then.
pub fn probe(volume: &Volume) -> Log {
    find(volume, true)
}

fn find(volume: &Volume, quick: bool) -> Log {
    let mut log = Log { area: None, state: State::Zeroed { traces: None }, foreign: None, foreign_fmt: None };
    let area = match Area::of(volume) {
        Ok(area) => area,
        Err(unknown) => return Log { state: State::Unknown(unknown), ..log },
    };
    log.area = Some(area);
    let mut finder = Finder { blocks: LogBlocks::new(volume, area), area, quick };
    log.state = finder.find(&mut log.foreign, &mut log.foreign_fmt).unwrap_or_else(State::Unknown);
    log
}

struct Finder<'a> {
    blocks: LogBlocks<'a>,
    area: Area,
    quick: bool,
}

impl Finder<'_> {
    /// Blocks that the largest record can have (`XLOG_REC_SHIFT`).
    fn record_blocks(&self) -> u32 {
        (if self.area.v2 { MAX_RECORD } else { BIG_RECORD }) >> 9
    }

    fn cycle(&mut self, block: u32, span: u64) -> Result<u32, Unknown> {
        let bytes = self.blocks.get(LogBlock(block), span)?;
        Ok(log::cycle(bytes).unwrap_or(0))
    }

    /// How much to read around a block that a search looks at: the more the larger the log, so that few reads do.
    fn span(&self) -> u64 {
        let bytes = u64::from(self.area.blocks).saturating_mul(512);
        (bytes >> 6).checked_next_power_of_two().unwrap_or(LARGE).clamp(SMALL, LARGE)
    }

    /// First block of `cycle` between `first` (not of that cycle) and `last` (of it): binary search
    /// (`xlog_find_cycle_start`), begun near `hint`, where the superblock says that the log was.
    fn cycle_start(
        &mut self,
        (mut first, mut last): (u32, u32),
        cycle: u32,
        hint: Option<u32>,
    ) -> Result<u32, Unknown> {
        let mut span = self.span();
        if let Some(hint) = hint.filter(|&hint| hint > first && hint < last) {
            span = SMALL;
            // Doubled steps away from the hint until the change of cycles is bracketed.
            let mut step = 64u32;
            if self.cycle(hint, span)? == cycle {
                last = hint;
                while let Some(at) = last.checked_sub(step).filter(|&at| at > first) {
                    if self.cycle(at, span)? != cycle {
                        first = at;
                        break;
                    }
                    last = at;
                    step = step.saturating_mul(2);
                }
            } else {
                first = hint;
                while let Some(at) = first.checked_add(step).filter(|&at| at < last) {
                    if self.cycle(at, span)? == cycle {
                        last = at;
                        break;
                    }
                    first = at;
                    step = step.saturating_mul(2);
                }
            }
        }
        loop {
            let middle = first.midpoint(last);
            if middle == first || middle == last {
                return Ok(last);
            }
            if self.cycle(middle, span)? == cycle {
                last = middle;
            } else {
                first = middle;
            }
        }
    }

    /// First block of `cycle` among `count` from `start` on (`xlog_find_verify_cycle`).
    fn find_cycle(&mut self, start: u32, count: u32, cycle: u32) -> Result<Option<u32>, Unknown> {
        for block in start..start.saturating_add(count).min(self.area.blocks) {
            if self.cycle(block, LARGE)? == cycle {
                return Ok(Some(block));
            }
        }
        Ok(None)
    }

    /// Takes back a record that was not written whole (`xlog_find_verify_log_record`): from `last` on back to
    /// `start`, a header must come, and its record must end at `last`, `extra` blocks of it lying elsewhere.
    /// `None` when block 0 is reached without a header.
    fn whole_record(&mut self, start: u32, last: u32, extra: u32) -> Result<Option<u32>, Unknown> {
        for block in (start..last).rev() {
            let v2 = self.area.v2;
            let bytes = self.blocks.get(LogBlock(block), LARGE)?;
            if !log::is_header(bytes) {
                continue;
            }
            let Some(header) = RecordHeader::decode(bytes) else { continue };
            let has = u64::from(last.saturating_sub(block)).saturating_add(u64::from(extra));
            let should = u64::from(header.body_blocks()).saturating_add(u64::from(header.header_blocks(v2)));
            return Ok(Some(if has == should { last } else { block }));
        }
        if start == 0 { Ok(None) } else { Err(Unknown::NoHeader { from: LogBlock(start), to: LogBlock(last) }) }
    }

    /// Where the next record would go.
    fn head(&mut self) -> Result<Head, Unknown> {
        let blocks = self.area.blocks;
        let end = blocks.saturating_sub(1);
        let hint = self.hint();
        let first_cycle = self.cycle(0, SMALL)?;
        if first_cycle == 0 {
            return Ok(Head { head: 0, by_cycle: 0, zeroed: true });
        }
        let last_cycle = self.cycle(end, SMALL)?;
        let under_way = blocks.min(self.record_blocks().saturating_mul(MAX_ICLOGS));
        if last_cycle == 0 {
            // The end was never written: a young log.
            let hint = hint.filter(|&hint| hint > 0);
            let mut within = (0, end);
            if hint.is_none() && self.quick {
                // The piece that holds the first block is at hand; in a large log one more look is worth it.
                let piece = self.area.start.0 | SMALL.saturating_sub(1);
                let near = piece.saturating_sub(self.area.start.0) >> 9;
                let near = u32::try_from(near).unwrap_or(0);
                let far = if blocks > 32 * YOUNG { YOUNG } else { near };
                for look in [near, far] {
                    if look > within.0 && look < within.1 {
                        let written = self.cycle(look, SMALL)? != 0;
                        within = if written { (look, within.1) } else { (within.0, look) };
                    }
                }
            }
            let mut last = self.cycle_start(within, 0, hint)?;
            if self.quick && self.unmounts_at(last)? {
                return Ok(Head { head: last, by_cycle: last, zeroed: false });
            }
            let scan = under_way.min(last);
            let start = last.saturating_sub(scan);
            last = self.find_cycle(start, scan, 0)?.unwrap_or(last);
            let Some(head) = self.whole_record(start, last, 0)? else {
                return Err(Unknown::NoHeader { from: LogBlock(start), to: LogBlock(last) });
            };
            return Ok(Head { head, by_cycle: last, zeroed: false });
        }
        let (mut head, stop) = if first_cycle == last_cycle {
            (blocks, last_cycle.wrapping_sub(1))
        } else {
            (self.cycle_start((0, end), last_cycle, hint)?, last_cycle)
        };
        if self.quick && head < blocks && self.unmounts_at(head)? {
            return Ok(Head { head, by_cycle: head, zeroed: false });
        }
        // Look for holes where records were under way.
        let hole = if let Some(start) = head.checked_sub(under_way) {
            self.find_cycle(start, under_way, stop)?
        } else {
            let rest = under_way.saturating_sub(head);
            match self.find_cycle(blocks.saturating_sub(rest), rest, stop.wrapping_sub(1))? {
                Some(hole) => Some(hole),
                None => self.find_cycle(0, head, stop)?,
            }
        };
        head = hole.unwrap_or(head);
        let by_cycle = head;
        let record = self.record_blocks();
        let start = head.saturating_sub(record);
        match self.whole_record(start, head, 0)? {
            Some(whole) => head = whole,
            None if head < record => {
                // The record began before the end of the log.
                let start = blocks.saturating_sub(record.saturating_sub(head));
                match self.whole_record(start, blocks, head)? {
                    Some(whole) if whole != blocks => head = whole,
                    Some(_) => {}
                    None => return Err(Unknown::NoHeader { from: LogBlock(start), to: LogBlock(head) }),
                }
            }
            None => return Err(Unknown::NoHeader { from: LogBlock(start), to: LogBlock(head) }),
        }
        let wrapped = |block| if block == blocks { 0 } else { block };
        Ok(Head { head: wrapped(head), by_cycle: wrapped(by_cycle), zeroed: false })
    }

    /// Does an unmount record end just before `head`? Only looked for where it lies in one piece.
    fn unmounts_at(&mut self, head: u32) -> Result<bool, Unknown> {
        for block in (head.saturating_sub(UNMOUNT_BLOCKS)..head).rev() {
            let bytes = self.blocks.get(LogBlock(block), SMALL)?;
            if !log::is_header(bytes) {
                continue;
            }
            let Some(header) = RecordHeader::decode(bytes) else { continue };
            let body = block.saturating_add(header.header_blocks(self.area.v2));
            let whole = u64::from(body).saturating_add(u64::from(header.body_blocks())) == u64::from(head);
            if !whole || header.num_logops != 1 || body >= head || header.lsn().block() != LogBlock(block) {
                return Ok(false);
            }
            let flags = OpHeader::decode(self.blocks.get(LogBlock(body), SMALL)?).map_or(0, |op| op.flags);
            return Ok(flags & OP_UNMOUNT != 0);
        }
        Ok(false)
    }

    /// Block of the log that the superblock's own sequence number names: near the head of a clean log. Only the quick
    /// probe takes it: in a damaged log it can lead elsewhere than the kernel's search.
    fn hint(&self) -> Option<u32> {
        let volume = self.blocks.volume();
        let lsn = Lsn(volume.superblock().lsn);
        (self.quick && volume.context().has_crc()).then(|| lsn.block().0)
    }

    /// The last record header before `head`, all around the log (`xlog_rseek_logrec_hdr`), and whether it lies past
    /// the head, at the end of the log.
    fn last_header(&mut self, head: u32) -> Result<Option<(u32, RecordHeader, bool)>, Unknown> {
        let order = (0..head).rev().map(|b| (b, false)).chain((head..self.area.blocks).rev().map(|b| (b, true)));
        for (block, wrapped) in order {
            let bytes = self.blocks.get(LogBlock(block), LARGE)?;
            if log::is_header(bytes)
                && let Some(header) = RecordHeader::decode(bytes)
            {
                return Ok(Some((block, header, wrapped)));
            }
        }
        Ok(None)
    }

    /// A block that is not all zeros, in the pieces at both ends of the log.
    fn traces(&mut self) -> Result<Option<LogBlock>, Unknown> {
        let blocks = self.area.blocks;
        let edge = 128.min(blocks);
        for block in (0..edge).chain(blocks.saturating_sub(edge)..blocks) {
            if self.blocks.get(LogBlock(block), SMALL)?.iter().any(|&b| b != 0) {
                return Ok(Some(LogBlock(block)));
            }
        }
        Ok(None)
    }

    fn find(&mut self, foreign: &mut Option<Uuid>, foreign_fmt: &mut Option<u32>) -> Result<State, Unknown> {
        let Head { head, by_cycle, zeroed } = self.head()?;
        if zeroed {
            return Ok(State::Zeroed { traces: self.traces()? });
        }
        let found = self.last_header(head)?;
        let nothing = Unknown::NoHeader { from: LogBlock(0), to: LogBlock(self.area.blocks) };
        let (last, header, wrapped) = found.ok_or(nothing)?;
        let uuid = self.blocks.volume().superblock().uuid;
        // IRIX writes neither uuid nor fmt.
        *foreign = Some(header.fs_uuid).filter(|found| *found != uuid && !found.is_nil());
        *foreign_fmt = Some(header.fmt).filter(|&fmt| fmt != 1);
        let cycle = if wrapped { header.cycle.wrapping_add(1) } else { header.cycle };
        let tail = header.tail().block();
        let mut ends = Ends {
            head: LogBlock(head),
            tail,
            last: LogBlock(last),
            current: Lsn::new(cycle, LogBlock(head)),
            tail_lsn: header.tail(),
            partial: (by_cycle != head).then_some(LogBlock(by_cycle)),
        };
        // An unmount record (xlog_check_unmount_rec): one operation, ending at the head.
        let header_blocks = header.header_blocks(self.area.v2);
        let body = self.area.after(LogBlock(last), header_blocks);
        let after = self.area.after(body, header.body_blocks());
        if after == ends.head && header.num_logops == 1 {
            let flags = OpHeader::decode(self.blocks.get(body, SMALL)?).map_or(0, |op| op.flags);
            if flags & OP_UNMOUNT != 0 {
                ends.tail = ends.head;
                return Ok(State::Clean { unmounted: true, ends });
            }
        }
        if ends.tail.0 >= self.area.blocks {
            let expected = format!("a block below {} in the low half", self.area.blocks);
            return Err(Unknown::Impossible { field: "tail_lsn", found: header.tail_lsn, expected });
        }
        if ends.tail == ends.head {
            return Ok(State::Clean { unmounted: false, ends });
        }
        Ok(State::Dirty(ends))
    }
}
