//! The live records, tail to head, and what recovery would make of them: `xlog_verify_head`, `xlog_verify_tail`,
//! `xlog_do_recovery_pass`, `xlog_valid_rec_header`, `xlog_recover_process` (xfs_log_recover.c).
//!
//! Headers are taken as they are and each field is judged; a record whose length cannot be is left at the next block
//! that begins with the magic. At most 264 KiB are in memory at a time, and every step goes forward.

use super::blocks::{LARGE, LogBlocks};
use super::{Area, Log, State, Unknown};
use crate::format::Structure;
use crate::format::log::{self, BIG_RECORD, MAGIC, MAX_ICLOGS, MAX_RECORD, OpHeader, RecordHeader};
use crate::units::{LogBlock, Lsn};
use crate::volume::Volume;

/// A field of a record header that cannot be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Kernel's name without prefix.
    pub field: &'static str,
    /// Value on disk.
    pub found: String,
    /// What it would have to be.
    pub expected: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is {}, expected {}", self.field, self.found, self.expected)
    }
}

/// A record of the log.
#[derive(Clone, Debug)]
pub struct Record {
    /// Block of its header.
    pub at: LogBlock,
    /// The header, whatever it says.
    pub header: RecordHeader,
    /// Header blocks.
    pub header_blocks: u32,
    /// What is wrong with it; empty for a sound record.
    pub faults: Vec<Fault>,
}

/// What recovery will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Records from tail to head.
    pub records: u32,
    /// A record that was not written whole before the machine stopped: the head goes back to it. Usual after a
    /// power failure.
    pub torn: Option<(LogBlock, Fault)>,
    /// The tail was overwritten and moves on to here.
    pub tail: Option<LogBlock>,
    /// Recovery, and so the mount, fails at this record.
    pub fails: Option<(LogBlock, Fault)>,
    /// Block where replay begins.
    pub from: LogBlock,
    /// Block where it ends; where both are equal nothing is left to replay.
    pub to: LogBlock,
}

/// The records between two blocks of a log.
pub struct Records<'a> {
    reader: Reader<'a>,
    at: LogBlock,
    end: LogBlock,
    done: bool,
}

struct Reader<'a> {
    blocks: LogBlocks<'a>,
    area: Area,
    v5: bool,
    /// Largest in-core buffer that a kernel takes for a record that says less (`m_logbsize`).
    logbsize: u32,
}

pub(super) fn fault(field: &'static str, found: impl std::fmt::Display, expected: impl std::fmt::Display) -> Fault {
    Fault { field, found: found.to_string(), expected: expected.to_string() }
}

impl<'a> Reader<'a> {
    fn new(volume: &'a Volume, area: Area) -> Self {
        let unit = if area.v2 { volume.superblock().logsunit } else { 0 };
        Self {
            blocks: LogBlocks::new(volume, area),
            area,
            v5: volume.context().has_crc(),
            logbsize: unit.clamp(BIG_RECORD, MAX_RECORD),
        }
    }

    fn header(&mut self, at: LogBlock) -> Result<RecordHeader, Unknown> {
        let bytes = self.blocks.get(at, LARGE)?;
        RecordHeader::decode(bytes).ok_or_else(|| Unknown::Unreadable(format!("log block {at} is too short")))
    }

    /// First block from `at` on to before `end` that holds a record header.
    fn next_header(&mut self, at: LogBlock, end: LogBlock) -> Result<Option<LogBlock>, Unknown> {
        let count = if at == end { self.area.blocks } else { self.area.distance(at, end) };
        for i in 0..count {
            let block = self.area.after(at, i);
            if log::is_header(self.blocks.get(block, LARGE)?) {
                return Ok(Some(block));
            }
        }
        Ok(None)
    }

    /// Up to `count` record headers back from before `head` to `tail`: the block of the farthest, and how many.
    fn back(&mut self, head: LogBlock, tail: LogBlock, count: u32) -> Result<Option<LogBlock>, Unknown> {
        let distance = if head == tail { self.area.blocks } else { self.area.distance(tail, head) };
        let (mut found, mut last) = (0u32, None);
        for i in (0..distance).rev() {
            let block = self.area.after(tail, i);
            if log::is_header(self.blocks.get(block, LARGE)?) {
                last = Some(block);
                found = found.saturating_add(1);
                if found >= count {
                    break;
                }
            }
        }
        Ok(last)
    }

    /// Size of the in-core buffers, from the first record of a pass: as the kernel, with its way around an old mkfs.
    fn buffer_size(&self, header: &RecordHeader) -> u32 {
        if !self.area.v2 {
            return BIG_RECORD;
        }
        if header.len > header.size && header.len <= self.logbsize && header.num_logops == 1 {
            return self.logbsize;
        }
        header.size
    }

    /// What `xlog_valid_rec_header` refuses; `size` is that of the in-core buffers.
    fn header_faults(&self, header: &RecordHeader, size: u32, faults: &mut Vec<Fault>) {
        if header.magicno != MAGIC {
            faults.push(fault("magicno", format_args!("{:#x}", header.magicno), format_args!("{MAGIC:#x}")));
            return;
        }
        let version = if self.area.v2 { 2 } else { 1 };
        if header.version != version {
            faults.push(fault("version", header.version, version));
        }
        if self.area.v2 && size > MAX_RECORD {
            faults.push(fault("size", format_args!("{size:#x}"), format_args!("at most {MAX_RECORD:#x} (256 KiB)")));
        }
        let most = size.min(MAX_RECORD);
        if header.len == 0 || header.len > most {
            let expected = format!("1 to {most:#x}, the size of the in-core buffer");
            faults.push(fault("len", format_args!("{:#x}", header.len), expected));
        }
    }

    /// Checksum of a record whose lengths are in bounds. `strict` as recovery itself, where V5 takes no zero.
    fn crc_fault(
        &mut self,
        at: LogBlock,
        header: &RecordHeader,
        blocks: u32,
        strict: bool,
    ) -> Result<Option<Fault>, Unknown> {
        let stored = header.crc.0;
        if (stored == 0 && !strict) || (strict && !self.v5) {
            return Ok(None);
        }
        let body_blocks = header.body_blocks();
        let all = self.blocks.run(at, blocks.saturating_add(body_blocks))?;
        let split = usize::try_from(blocks).unwrap_or(1).saturating_mul(log::BLOCK);
        let len = usize::try_from(header.len).unwrap_or(0);
        let (headers, body) = all.split_at_checked(split).unwrap_or((&all, &[]));
        let sums = body.get(..len).and_then(|body| log::checksums(headers, body, self.area.v2));
        Ok(match sums {
            Some(sums) if sums.contains(&stored) => None,
            Some([computed, _]) => Some(fault("crc", format_args!("{stored:#x}"), format_args!("{computed:#x}"))),
            None => Some(fault("len", format_args!("{:#x}", header.len), "no more than the log holds")),
        })
    }

    /// The kernel's walk over records: the first that it would not take.
    fn pass(
        &mut self,
        from: LogBlock,
        to: LogBlock,
        strict: bool,
    ) -> Result<(u32, Option<(LogBlock, Fault)>), Unknown> {
        let first = self.header(from)?;
        let size = self.buffer_size(&first);
        let header_blocks = if self.area.v2 && first.version & 2 != 0 && size > log::HEADER_CYCLE_SIZE {
            size.min(MAX_RECORD).div_ceil(log::HEADER_CYCLE_SIZE)
        } else {
            1
        };
        let uuid = self.blocks.volume().superblock().uuid;
        let (mut at, mut records) = (from, 0u32);
        let mut left = if from == to { self.area.blocks } else { self.area.distance(from, to) };
        while left > 0 {
            let header = self.header(at)?;
            let mut faults = Vec::new();
            self.header_faults(&header, size, &mut faults);
            if faults.is_empty()
                && let Some(bad) = self.crc_fault(at, &header, header_blocks, strict)?
            {
                faults.push(bad);
            }
            if strict && header.fmt != 1 {
                faults.push(fault("fmt", header.fmt, "1, a little-endian Linux (or a kernel of that byte order)"));
            }
            if strict && header.fs_uuid != uuid {
                faults.push(fault("fs_uuid", header.fs_uuid, uuid));
            }
            if let Some(bad) = faults.into_iter().next() {
                return Ok((records, Some((at, bad))));
            }
            records = records.saturating_add(1);
            let step = header_blocks.saturating_add(header.body_blocks());
            at = self.area.after(at, step);
            left = left.saturating_sub(step);
        }
        Ok((records, None))
    }

    /// Everything that can be said of one record.
    fn examine(&mut self, at: LogBlock, end: LogBlock) -> Result<Record, Unknown> {
        let header = self.header(at)?;
        let mut faults = Vec::new();
        self.header_faults(&header, self.buffer_size(&header), &mut faults);
        let header_blocks = header.header_blocks(self.area.v2);
        if header.magicno != MAGIC {
            return Ok(Record { at, header, header_blocks: 1, faults });
        }
        let lsn = Lsn::new(header.cycle, at);
        if header.lsn() != lsn {
            faults.push(fault("lsn", format_args!("{:#x}", header.lsn), format_args!("{:#x}: cycle and block", lsn.0)));
        }
        if header.tail().block().0 >= self.area.blocks || header.tail() > header.lsn() {
            let expected = format!("no more than {:#x}, in a log of {} blocks", header.lsn, self.area.blocks);
            faults.push(fault("tail_lsn", format_args!("{:#x}", header.tail_lsn), expected));
        }
        let ops = header.len.checked_div(u32::try_from(OpHeader::SIZE).unwrap_or(12)).unwrap_or(0);
        if header.num_logops > ops {
            faults.push(fault(
                "num_logops",
                header.num_logops,
                format_args!("at most {ops} in {:#x} bytes", header.len),
            ));
        }
        let uuid = self.blocks.volume().superblock().uuid;
        if header.fs_uuid != uuid {
            faults.push(fault("fs_uuid", header.fs_uuid, uuid));
        }
        if !matches!(header.fmt, 1 | 2) {
            faults.push(fault("fmt", header.fmt, "1 (little-endian) or 2 (big-endian)"));
        }
        let length = header_blocks.saturating_add(header.body_blocks());
        let sane = !faults.iter().any(|f| matches!(f.field, "len" | "version"));
        let room = if at == end { self.area.blocks } else { self.area.distance(at, end) };
        if sane && length > room {
            let expected = format!("at most {:#x}: the head is {room} blocks on", u64::from(room).saturating_mul(512));
            faults.push(fault("len", format_args!("{:#x}", header.len), expected));
        } else if sane && let Some(bad) = self.crc_fault(at, &header, header_blocks, self.v5)? {
            faults.push(bad);
        }
        Ok(Record { at, header, header_blocks, faults })
    }
}

impl<'a> Records<'a> {
    /// The records from `from` on to before `to`; where both are equal, all around the log.
    pub fn new(volume: &'a Volume, area: Area, from: LogBlock, to: LogBlock) -> Self {
        Self {
            reader: Reader::new(volume, area),
            at: from,
            end: to,
            done: from.0 >= area.blocks || to.0 >= area.blocks,
        }
    }

    /// The live records of a dirty log, and a record at its head that was not written whole.
    pub fn live(volume: &'a Volume, log: &Log) -> Option<Self> {
        let (State::Dirty(ends), Some(area)) = (&log.state, log.area) else { return None };
        Some(Self::new(volume, area, ends.tail, ends.partial.unwrap_or(ends.head)))
    }

    fn step(&mut self) -> Result<Record, Unknown> {
        let record = self.reader.examine(self.at, self.end)?;
        let area = self.reader.area;
        let left = area.distance(self.at, self.end);
        let left = if left == 0 { area.blocks } else { left };
        let length = record.header_blocks.saturating_add(record.header.body_blocks());
        let lost = record.faults.iter().any(|f| matches!(f.field, "magicno" | "version" | "len" | "size"));
        if !lost && length >= left {
            self.done = true;
            return Ok(record);
        }
        let next = if lost { area.after(self.at, 1) } else { area.after(self.at, length) };
        if lost {
            match if next == self.end { None } else { self.reader.next_header(next, self.end)? } {
                Some(found) => self.at = found,
                None => self.done = true,
            }
        } else {
            self.at = next;
        }
        Ok(record)
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, Unknown>;

    /// The next record; ends after an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let record = self.step();
        self.done |= record.is_err();
        Some(record)
    }
}

/// What recovery would do with a dirty log; `None` where there is nothing to recover. Reads all live records, up to
/// three times.
///
/// # Errors
/// A block that could not be read.
pub fn verify(volume: &Volume, log: &Log) -> Result<Option<Recovery>, Unknown> {
    let (State::Dirty(ends), Some(area)) = (&log.state, log.area) else { return Ok(None) };
    let mut reader = Reader::new(volume, area);
    let (mut head, mut tail) = (ends.head, ends.tail);
    let mut result = Recovery { records: 0, torn: None, tail: None, fails: None, from: tail, to: head };
    let mut last_size = reader.header(ends.last)?.size;
    // The newest records may be cut: as many as can be under way at once.
    let Some(start) = reader.back(head, tail, MAX_ICLOGS)? else {
        result.fails = Some((tail, fault("magicno", "no record from tail to head", format_args!("{MAGIC:#x}"))));
        return Ok(Some(result));
    };
    if let (_, Some((bad, why))) = reader.pass(start, head, false)? {
        let good = if bad == tail { None } else { reader.back(bad, tail, 1)? };
        let Some(good) = good else {
            result.fails = Some((bad, why));
            return Ok(Some(result));
        };
        result.torn = Some((bad, why));
        let header = reader.header(good)?;
        (head, tail, last_size) = (bad, header.tail().block(), header.size);
        if tail.0 >= area.blocks {
            let expected = format!("a block below {}", area.blocks);
            result.fails = Some((good, fault("tail_lsn", format_args!("{:#x}", header.tail_lsn), expected)));
            return Ok(Some(result));
        }
        (result.from, result.to) = (tail, head);
        if head == tail {
            return Ok(Some(result));
        }
    }
    // The tail may have been overwritten by records that are cut.
    let reach = MAX_ICLOGS.saturating_mul(last_size.min(MAX_RECORD).div_ceil(512));
    let old_tail = tail;
    let mut skip = 0u32;
    loop {
        let Some(first) = reader.next_header(area.after(tail, skip), head)? else {
            result.fails = Some((tail, fault("magicno", "no record from tail to head", format_args!("{MAGIC:#x}"))));
            return Ok(Some(result));
        };
        tail = first;
        let (records, bad) = reader.pass(tail, head, false)?;
        result.records = records;
        let Some((bad, why)) = bad else { break };
        if area.distance(head, bad) > reach || area.after(bad, 1) == head {
            result.fails = Some((bad, why));
            return Ok(Some(result));
        }
        (tail, skip) = (bad, 1);
    }
    result.tail = (tail != old_tail).then_some(tail);
    result.from = tail;
    let (records, bad) = reader.pass(tail, head, true)?;
    result.fails = bad;
    if result.fails.is_none() {
        result.records = records;
    }
    Ok(Some(result))
}
