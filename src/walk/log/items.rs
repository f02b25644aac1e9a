//! The items that recovery will replay: the operations of the live records, put together to transactions.
//! `xlog_recover_process_data`, `xlog_recover_process_ophdr`, `xlog_recover_add_to_trans`, `xlog_recover_commit_trans`
//! (xfs_log_recover.c). Only the first region of an item is looked at, which says what the item changes; of the primary
//! superblock all of it, so that the geometry after recovery is known.

use super::blocks::LogBlocks;
use super::records::{Fault, Record, Records, Recovery, fault};
use super::{Log, Unknown};
use crate::format::Structure;
use crate::format::log::{self, OpHeader};
use crate::format::log_item::{FIRST_REGION, LogItem, MAX_REGIONS, Order, TRANS_HEADER, TRANS_MAGIC, chunks};
use crate::format::superblock::{self, Superblock};
use crate::units::{ByteOffset, Daddr, Device, LogBlock, Lsn};
use crate::volume::Volume;
use std::collections::HashMap;

/// Items that are kept until their transactions commit: as many as fit into a few hundred MiB of log.
const MOST: usize = 1 << 20;

/// Transactions that may be open at once: a log has a few, one for each thread of old kernels.
const MOST_OPEN: usize = 1 << 16;

/// Bytes of the superblock that are kept: more than it has fields.
const SUPERBLOCK: usize = 512;

/// Where a part of the superblock begins, and the part.
type Patch = (usize, Vec<u8>);

/// A transaction that has not been committed yet.
#[derive(Default)]
struct Transaction {
    /// Bytes of its header.
    header: u32,
    items: Vec<LogItem>,
    /// The item that is being put together.
    first: Vec<u8>,
    /// Bytes of its first region.
    length: u64,
    /// Regions it has …
    regions: u16,
    /// … and will have.
    total: u16,
    /// Where the further regions belong, if it is the superblock …
    runs: Vec<(usize, usize)>,
    /// … and what they say.
    superblock: Vec<Patch>,
}

/// Why an operation cannot be replayed: field, value, what would be right.
type Bad = (&'static str, String, String);

impl Transaction {
    /// A region (`xlog_recover_add_to_trans`).
    fn region(&mut self, bytes: &[u8], order: Order) -> Result<(), Bad> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.header < TRANS_HEADER {
            let magic = order.u32(bytes, 0);
            if self.header == 0 && magic != Some(TRANS_MAGIC) {
                let found = magic.map_or("cut".to_owned(), |magic| format!("{magic:#x}"));
                return Err(("th_magic", found, format!("{TRANS_MAGIC:#x}")));
            }
            return self.header_part(bytes);
        }
        if self.regions == self.total {
            self.finish(order)?;
            let total = order.u16(bytes, 2).filter(|&total| total > 0 && total <= MAX_REGIONS);
            let Some(total) = total else {
                let found = order.u16(bytes, 2).map_or("cut".to_owned(), |total| total.to_string());
                return Err(("item_size", found, format!("1 to {MAX_REGIONS} regions")));
            };
            (self.regions, self.total, self.length) = (0, total, 0);
            self.more(bytes);
        } else {
            self.part(bytes, order);
        }
        self.regions = self.regions.saturating_add(1);
        Ok(())
    }

    /// A further region: kept if it is part of the superblock.
    fn part(&mut self, bytes: &[u8], order: Order) {
        if self.regions == 1 {
            let first = LogItem::decode(&self.first, self.length, order);
            let primary = matches!(first, Some(LogItem::Buffer { daddr: Daddr(0), cancelled: false, .. }));
            self.runs = if primary { chunks(&self.first, order) } else { Vec::new() };
        }
        let run = usize::from(self.regions).checked_sub(1).and_then(|i| self.runs.get(i));
        if let Some(&(at, length)) = run
            && at < SUPERBLOCK
        {
            let length = length.min(bytes.len()).min(SUPERBLOCK);
            self.superblock.push((at, bytes.get(..length).unwrap_or_default().to_vec()));
        }
    }

    /// The rest of such a region.
    fn rest_of_part(&mut self, bytes: &[u8]) {
        let run = usize::from(self.regions).checked_sub(2).and_then(|i| self.runs.get(i));
        if let Some(&(at, length)) = run
            && let Some((_, part)) = self.superblock.last_mut().filter(|(begin, _)| *begin == at)
        {
            let room = length.min(SUPERBLOCK).saturating_sub(part.len()).min(bytes.len());
            part.extend_from_slice(bytes.get(..room).unwrap_or_default());
        }
    }

    fn header_part(&mut self, bytes: &[u8]) -> Result<(), Bad> {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.header = self.header.saturating_add(length);
        if self.header > TRANS_HEADER {
            return Err(("th_len", self.header.to_string(), format!("{TRANS_HEADER}, a transaction's header")));
        }
        Ok(())
    }

    /// The rest of a region (`xlog_recover_add_to_cont_trans`).
    fn rest(&mut self, bytes: &[u8]) -> Result<(), Bad> {
        if self.header < TRANS_HEADER {
            return self.header_part(bytes);
        }
        if self.regions == 1 {
            self.more(bytes);
        } else {
            self.rest_of_part(bytes);
        }
        Ok(())
    }

    /// Bytes of the first region.
    fn more(&mut self, bytes: &[u8]) {
        self.length = self.length.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let room = FIRST_REGION.saturating_sub(self.first.len()).min(bytes.len());
        self.first.extend_from_slice(bytes.get(..room).unwrap_or_default());
    }

    /// The item is whole.
    fn finish(&mut self, order: Order) -> Result<(), Bad> {
        if self.total == 0 {
            return Ok(());
        }
        let kind = || format!("{:#x}", order.u16(&self.first, 0).unwrap_or(0));
        match LogItem::decode(&self.first, self.length, order) {
            Some(LogItem::Unknown(_)) => return Err(("item_type", kind(), "a type of log item".into())),
            None => {
                let found = format!("{} bytes for type {}", self.length, kind());
                return Err(("item_len", found, "a whole first region".into()));
            }
            Some(item) => self.items.push(item),
        }
        self.first.clear();
        self.runs.clear();
        Ok(())
    }
}

/// Puts the operations of records together.
struct Replay<'a> {
    blocks: LogBlocks<'a>,
    open: HashMap<u32, Transaction>,
    kept: usize,
    /// Parts of the superblock that were committed, with the record's sequence number.
    superblock: Vec<(Lsn, Patch)>,
}

impl Replay<'_> {
    /// Body of a record, with the words that the cycle numbers replaced (`xlog_unpack_data`).
    fn body(&mut self, record: &Record) -> Result<Vec<u8>, Unknown> {
        let area = self.blocks.area;
        let headers = self.blocks.run(record.at, record.header_blocks)?;
        let from = area.after(record.at, record.header_blocks);
        let mut body = self.blocks.run(from, record.header.body_blocks())?;
        for (i, block) in body.chunks_mut(log::BLOCK).enumerate() {
            let (header, word) = (i.checked_div(64).unwrap_or(0), i.checked_rem(64).unwrap_or(0));
            let base = header.saturating_mul(log::BLOCK).saturating_add(if header == 0 { 44 } else { 4 });
            let at = base.saturating_add(word.saturating_mul(4));
            if let (Some(kept), Some(first)) = (headers.get(at..at.saturating_add(4)), block.get_mut(..4)) {
                first.copy_from_slice(kept);
            }
        }
        body.truncate(usize::try_from(record.header.len).unwrap_or(0));
        Ok(body)
    }

    fn record(&mut self, record: &Record, on: &mut dyn FnMut(LogBlock, LogItem)) -> Result<Option<Bad>, Unknown> {
        let Some(order) = Order::of(record.header.fmt) else {
            return Ok(Some(("fmt", record.header.fmt.to_string(), "1 or 2, a Linux".into())));
        };
        let body = self.body(record)?;
        let (mut rest, mut left) = (body.as_slice(), record.header.num_logops);
        while left > 0 && !rest.is_empty() {
            let Some((op, behind)) = OpHeader::decode(rest).zip(rest.get(OpHeader::SIZE..)) else {
                return Ok(Some(("oh_len", format!("{} bytes", rest.len()), "a whole operation header".into())));
            };
            let Some((bytes, behind)) = usize::try_from(op.len).ok().and_then(|len| behind.split_at_checked(len))
            else {
                return Ok(Some((
                    "oh_len",
                    op.len.to_string(),
                    format!("at most {}, the rest of the record", behind.len()),
                )));
            };
            if let Err(bad) = self.operation(&op, bytes, order, record, on) {
                return Ok(Some(bad));
            }
            if self.kept > MOST {
                return Err(Unknown::Unreadable(format!("more than {MOST} items in transactions without end")));
            }
            if self.open.len() > MOST_OPEN {
                return Err(Unknown::Unreadable(format!("more than {MOST_OPEN} transactions without end")));
            }
            (rest, left) = (behind, left.saturating_sub(1));
        }
        Ok(None)
    }

    /// Keeps the last parts of the superblock: each transaction that changes it has all of its fields.
    fn committed(&mut self, lsn: Lsn, patches: Vec<Patch>) {
        for patch in patches {
            self.superblock.retain(|(_, (at, part))| *at != patch.0 || part.len() > patch.1.len());
            self.superblock.push((lsn, patch));
        }
    }

    /// The superblock on disk with what recovery writes into it; `None` where it writes nothing.
    fn recovered(self) -> Result<Option<Superblock>, Unknown> {
        if self.superblock.is_empty() {
            return Ok(None);
        }
        let length = u32::try_from(SUPERBLOCK).unwrap_or(512);
        let block = self.blocks.volume().read(Device::Data, ByteOffset(0), length, "sb 0");
        let mut bytes = block.map_err(|error| Unknown::Unreadable(error.to_string()))?.bytes;
        let on_disk = Superblock::decode(&bytes).filter(|sb| sb.magicnum == superblock::MAGIC);
        // What is newer on disk stays (xlog_recover_get_buf_lsn).
        let newer = on_disk.filter(|sb| sb.features().is_v5() && sb.lsn != u64::MAX).map_or(0, |sb| sb.lsn);
        let mut changed = false;
        for (lsn, (at, part)) in &self.superblock {
            if newer != 0 && newer >= lsn.0 {
                continue;
            }
            for (to, from) in bytes.iter_mut().skip(*at).zip(part) {
                (*to, changed) = (*from, true);
            }
        }
        Ok(Superblock::decode(&bytes).filter(|sb| changed && sb.magicnum == superblock::MAGIC))
    }

    fn operation(
        &mut self,
        op: &OpHeader,
        bytes: &[u8],
        order: Order,
        record: &Record,
        on: &mut dyn FnMut(LogBlock, LogItem),
    ) -> Result<(), Bad> {
        if !log::CLIENTS.contains(&op.clientid) {
            return Err(("oh_clientid", format!("{:#x}", op.clientid), "0x69 or 0xaa".into()));
        }
        let Some(transaction) = self.open.get_mut(&op.tid) else {
            // What began before the tail is on disk.
            if op.flags & log::OP_START != 0 {
                self.open.insert(op.tid, Transaction::default());
            }
            return Ok(());
        };
        let mut flags = op.flags & !log::OP_END;
        if flags & log::OP_WAS_CONT != 0 {
            flags &= !log::OP_CONTINUE;
        }
        let before = transaction.items.len();
        match flags {
            0 | log::OP_CONTINUE => transaction.region(bytes, order)?,
            log::OP_WAS_CONT => transaction.rest(bytes)?,
            log::OP_COMMIT => {
                transaction.finish(order)?;
                self.kept = self.kept.saturating_sub(before);
                let done = self.open.remove(&op.tid).unwrap_or_default();
                done.items.into_iter().for_each(|item| on(record.at, item));
                self.committed(record.header.lsn(), done.superblock);
                return Ok(());
            }
            log::OP_UNMOUNT => {
                self.kept = self.kept.saturating_sub(before);
                self.open.remove(&op.tid);
                return Ok(());
            }
            other => return Err(("oh_flags", format!("{other:#x}"), "one of start, commit, continue, end".into())),
        }
        self.kept = self.kept.saturating_add(transaction.items.len().saturating_sub(before));
        Ok(())
    }
}

/// What came of the items.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// Where recovery fails, if it does.
    pub fails: Option<(LogBlock, Fault)>,
    /// The primary superblock as recovery will leave it, where it changes it.
    pub superblock: Option<Superblock>,
}

/// Hands the items of committed transactions to `on`, with the block of the record that commits them; `recovery` is what
/// [`verify`](super::verify) said of this log.
///
/// # Errors
/// A block that could not be read, or more open transactions than fit into memory.
pub fn replay(
    volume: &Volume,
    log: &Log,
    recovery: &Recovery,
    on: &mut dyn FnMut(LogBlock, LogItem),
) -> Result<Replayed, Unknown> {
    let Some(area) = log.area.filter(|_| recovery.fails.is_none() && recovery.from != recovery.to) else {
        return Ok(Replayed { fails: recovery.fails.clone(), superblock: None });
    };
    let blocks = LogBlocks::new(volume, area);
    let mut replay = Replay { blocks, open: HashMap::new(), kept: 0, superblock: Vec::new() };
    for record in Records::new(volume, area, recovery.from, recovery.to) {
        let record = record?;
        if let Some((field, found, expected)) = replay.record(&record, on)? {
            let fails = Some((record.at, fault(field, found, expected)));
            return Ok(Replayed { fails, superblock: None });
        }
    }
    Ok(Replayed { fails: None, superblock: replay.recovered()? })
}

/// [`replay`], where only the items and whether recovery fails are asked for.
///
/// # Errors
/// As [`replay`].
pub fn items(
    volume: &Volume,
    log: &Log,
    recovery: &Recovery,
    on: &mut dyn FnMut(LogBlock, LogItem),
) -> Result<Option<(LogBlock, Fault)>, Unknown> {
    replay(volume, log, recovery, on).map(|replayed| replayed.fails)
}
