//! Logs of real file systems (their superblock and first log blocks, the rest zeros as on disk), logs made here
//! block by block, and damaged ones.

use super::*;
use crate::format::log;
use crate::source::MemorySource;
use crate::volume::{Choice, Devices};
use proptest::prelude::*;
use std::sync::Arc;

const FROZEN: &[u8] = include_bytes!("../../../testimages/log-frozen.blocks.zst");
const ABSURD: &[u8] = include_bytes!("../../../testimages/log-absurd.blocks.zst");

/// Superblock sector and log blocks of a test image.
fn parts(packed: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let all = zstd::decode_all(packed).expect("packed well");
    (all[..512].to_vec(), all[512..].to_vec())
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// The superblock as that of a file system with an external log of `blocks` 512-byte blocks.
fn with_external_log(mut sb: Vec<u8>, mut log: Vec<u8>, blocks: u32) -> Volume {
    let size = u32::from_be_bytes(sb[4..8].try_into().expect("four"));
    put(&mut sb, 48, &0u64.to_be_bytes());
    put(&mut sb, 96, &(blocks * 512 / size).to_be_bytes());
    log.resize(blocks as usize * 512, 0);
    let mut devices = Devices::data_only(Arc::new(MemorySource::new(sb)));
    devices.log = Some(Arc::new(MemorySource::new(log)));
    Volume::open(devices, Choice::default()).expect("a superblock")
}

#[test]
fn a_frozen_file_system_has_two_records_to_replay() {
    // xfs_logprint 7.2 -t: tail 10, head 14, dirty; records at blocks 10 and 12.
    let (sb, blocks) = parts(FROZEN);
    let volume = with_external_log(sb, blocks, 131_072);
    let log = state(&volume);
    let State::Dirty(ends) = &log.state else { panic!("{:?}", log.state) };
    assert_eq!((ends.tail, ends.head, ends.last), (LogBlock(10), LogBlock(14), LogBlock(12)));
    assert_eq!((ends.current, ends.partial), (Lsn::new(1, LogBlock(14)), None));
    assert_eq!(log.foreign, None);
    let at: Vec<u32> = Records::live(&volume, &log).expect("dirty").map(|r| r.expect("readable").at.0).collect();
    assert_eq!(at, [10, 12]);
    let recovery = verify(&volume, &log).expect("readable");
    assert_eq!(
        recovery,
        Some(Recovery { records: 2, torn: None, tail: None, fails: None, from: LogBlock(10), to: LogBlock(14) })
    );
    assert_eq!(log.allows(Lsn::new(1, LogBlock(14))), Some(true));
    assert_eq!(log.allows(Lsn::new(1, LogBlock(15))), Some(false));
}

#[test]
fn before_the_freeze_it_was_clean() {
    // Cut after block 2: what is left is the unmount record of mkfs.xfs.
    let (sb, blocks) = parts(FROZEN);
    let log = state(&with_external_log(sb, blocks[..1024].to_vec(), 131_072));
    assert!(matches!(log.state, State::Clean { unmounted: true, ends } if ends.head == LogBlock(2)), "{log:?}");
}

#[test]
fn absurd_lengths_are_named() {
    // A public report: h_size 0xfffff000 in the record of block 69, h_len 0x7fffffff in that of block 133, no CRC.
    // xfs_logprint: tail 2, head 133. Kernels 6.1 to 7.2 refuse: CRC mismatch.
    let (sb, blocks) = parts(ABSURD);
    let volume = with_external_log(sb, blocks, 131_072);
    let log = state(&volume);
    let ends = log.ends().expect("records");
    assert_eq!((ends.tail, ends.head, log.is_dirty()), (LogBlock(2), LogBlock(133), Some(true)));
    let records: Vec<Record> =
        Records::live(&volume, &log).expect("dirty").collect::<Result<_, _>>().expect("readable");
    let at: Vec<u32> = records.iter().map(|r| r.at.0).collect();
    assert_eq!(at, [2, 66, 69, 133]);
    let fields = |i: usize| records[i].faults.iter().map(|f| f.field).collect::<Vec<_>>();
    assert_eq!((fields(0), fields(1)), (vec![], vec![]));
    assert_eq!((fields(2), fields(3)), (vec!["size", "crc"], vec!["len"]));
    assert_eq!(records[2].faults[0].found, "0xfffff000");
    assert_eq!(records[3].faults[0].found, "0x7fffffff");
    let fails = verify(&volume, &log).expect("readable").expect("dirty").fails.expect("kernels refuse");
    assert_eq!((fails.0, fails.1.field), (LogBlock(69), "crc"));
}

#[test]
fn torn_and_damaged_records() {
    let (sb, blocks) = parts(FROZEN);
    // A byte of the last record's body: it was not written whole, and is dropped.
    let mut torn = blocks.clone();
    torn[13 * 512 + 100] ^= 1;
    let volume = with_external_log(sb.clone(), torn, 131_072);
    let recovery = verify(&volume, &state(&volume)).expect("readable").expect("dirty");
    assert_eq!(recovery.torn.map(|(at, why)| (at, why.field)), Some((LogBlock(12), "crc")));
    assert_eq!(recovery.fails, None);
    // Another uuid in the last header.
    let mut foreign = blocks.clone();
    foreign[12 * 512 + 304] ^= 0xff;
    let log = state(&with_external_log(sb.clone(), foreign, 131_072));
    assert!(log.foreign.is_some());
    // A tail past the end of the log.
    let mut tail = blocks.clone();
    put(&mut tail, 12 * 512 + 28, &u32::MAX.to_be_bytes());
    let log = state(&with_external_log(sb.clone(), tail, 131_072));
    assert!(matches!(log.state, State::Unknown(Unknown::Impossible { field: "tail_lsn", .. })), "{log:?}");
    // No header at all, cycles only.
    let mut bare = blocks;
    for block in bare.chunks_mut(512) {
        put(block, 0, &1u32.to_be_bytes());
    }
    let log = state(&with_external_log(sb, bare, 131_072));
    assert!(matches!(log.state, State::Unknown(Unknown::NoHeader { .. })), "{log:?}");
}

#[test]
fn zeroed_not_given_too_short_impossible() {
    let (sb, blocks) = parts(FROZEN);
    let log = state(&with_external_log(sb.clone(), vec![], 131_072));
    assert_eq!((log.state, log.area.map(|a| a.blocks)), (State::Zeroed { traces: None }, Some(131_072)));
    let mut wiped = blocks;
    wiped[..512].fill(0);
    let log = state(&with_external_log(sb.clone(), wiped, 131_072));
    assert_eq!(log.state, State::Zeroed { traces: Some(LogBlock(1)) });
    let open = |sb: &[u8]| {
        let devices = Devices::data_only(Arc::new(MemorySource::new(sb.to_vec())));
        state(&Volume::open(devices, Choice::default()).expect("a superblock")).state
    };
    let mut external = sb.clone();
    put(&mut external, 48, &[0; 8]);
    assert_eq!(open(&external), State::Unknown(Unknown::NotGiven { needed: 64 << 20 }));
    assert!(matches!(open(&sb), State::Unknown(Unknown::TooShort { device: Device::Data, .. })));
    for blocks in [0u32, 511, u32::MAX] {
        let mut sb = sb.clone();
        put(&mut sb, 96, &blocks.to_be_bytes());
        assert!(matches!(open(&sb), State::Unknown(Unknown::Impossible { field: "logblocks", .. })));
    }
    put(&mut external, 48, &u64::MAX.to_be_bytes());
    assert!(matches!(open(&external), State::Unknown(Unknown::Impossible { field: "logstart", .. })));
}

/// A log written here: records one after the other, round and round, as a kernel lays them out.
struct Writer {
    bytes: Vec<u8>,
    blocks: u32,
    cycle: u32,
    at: u32,
    headers: Vec<Lsn>,
}

impl Writer {
    fn new(blocks: u32) -> Self {
        Self { bytes: vec![0; blocks as usize * 512], blocks, cycle: 1, at: 0, headers: vec![] }
    }

    fn block(&mut self, fill: impl FnOnce(&mut [u8], u32)) {
        let start = self.at as usize * 512;
        let cycle = self.cycle;
        let block = &mut self.bytes[start..start + 512];
        block.fill(0);
        put(block, 0, &cycle.to_be_bytes());
        fill(block, cycle);
        self.at += 1;
        if self.at == self.blocks {
            (self.at, self.cycle) = (0, self.cycle + 1);
        }
    }

    fn record(&mut self, uuid: &[u8], body: u32, tail: Lsn, unmount: bool) {
        let lsn = Lsn::new(self.cycle, LogBlock(self.at));
        self.headers.push(lsn);
        self.block(|block, cycle| {
            put(block, 0, &log::MAGIC.to_be_bytes());
            put(block, 4, &cycle.to_be_bytes());
            put(block, 8, &2u32.to_be_bytes());
            put(block, 12, &(body * 512).to_be_bytes());
            put(block, 16, &lsn.0.to_be_bytes());
            put(block, 24, &tail.0.to_be_bytes());
            put(block, 40, &1u32.to_be_bytes());
            put(block, 300, &1u32.to_be_bytes());
            put(block, 304, uuid);
            put(block, 320, &32768u32.to_be_bytes());
        });
        for i in 0..body {
            self.block(|block, _| {
                if i == 0 && unmount {
                    block[9] = log::OP_UNMOUNT;
                }
            });
        }
    }
}
/// A small V4 superblock, so that records need no checksum, with a version 2 log of its own device.
fn v4(uuid: &[u8; 16]) -> Vec<u8> {
    let (mut sb, _) = parts(FROZEN);
    put(&mut sb, 100, &0xb4b4u16.to_be_bytes());
    put(&mut sb, 32, uuid);
    sb
}

/// Operations that begin transaction after transaction must not fill the memory.
#[test]
fn transactions_without_end() {
    let uuid = [7; 16];
    let mut log = Writer::new(8192);
    let mut tid = 0u32;
    for _ in 0..64 {
        let header = log.at as usize * 512;
        let tail = Lsn::new(1, LogBlock(0));
        log.record(&uuid, 63, tail, false);
        let mut body = vec![0; 63 * 512];
        let ops = body.len() / 12;
        for op in body.chunks_exact_mut(12) {
            tid += 1;
            put(op, 0, &tid.to_be_bytes());
            put(op, 8, &[0x69, log::OP_START]);
        }
        put(&mut log.bytes, header + 12, &(u32::try_from(ops).expect("few") * 12).to_be_bytes());
        put(&mut log.bytes, header + 40, &u32::try_from(ops).expect("few").to_be_bytes());
        for (i, block) in body.chunks_mut(512).enumerate() {
            put(&mut log.bytes, header + 44 + i * 4, &block[..4]);
            put(block, 0, &1u32.to_be_bytes());
            put(&mut log.bytes, header + (i + 1) * 512, block);
        }
    }
    let volume = with_external_log(v4(&uuid), log.bytes, 8192);
    let found = state(&volume);
    let recovery = verify(&volume, &found).expect("readable").expect("dirty");
    assert_eq!((recovery.records, recovery.fails.clone()), (64, None));
    let answer = items(&volume, &found, &recovery, &mut |_, _| {});
    assert!(matches!(&answer, Err(Unknown::Unreadable(why)) if why.contains("65536 transactions")), "{answer:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever was written, head and tail are found where they are.
    #[test]
    fn what_was_written_is_found(
        bodies in proptest::collection::vec(1u32..64, 1..600), keep in 1usize..20, unmount in any::<bool>(),
        hint in any::<u64>(), cut in 0u32..64,
    ) {
        let uuid = [7; 16];
        let blocks = 8192;
        let mut log = Writer::new(blocks);
        for &body in &bodies {
            let tail = log.headers.len().checked_sub(keep.min(log.headers.len()));
            let tail = tail.and_then(|i| log.headers.get(i).copied()).unwrap_or(Lsn::new(log.cycle, LogBlock(log.at)));
            log.record(&uuid, body, tail, false);
        }
        if unmount {
            let tail = Lsn::new(log.cycle, LogBlock(log.at));
            log.record(&uuid, 1, tail, true);
        }
        let (head, current) = (log.at, Lsn::new(log.cycle, LogBlock(log.at)));
        let last = *log.headers.last().expect("at least one");
        let tail = log.headers[log.headers.len() - 1 - keep.min(log.headers.len() - 1)];
        // A record whose end never reached the disk.
        let torn = cut > 1 && log.at + 64 < blocks;
        if torn {
            let old: Vec<u8> = log.bytes.clone();
            let start = log.at;
            log.record(&uuid, cut, last, false);
            let lost = (start + cut / 2 + 1) as usize * 512..(start + cut + 1) as usize * 512;
            log.bytes[lost.clone()].copy_from_slice(&old[lost]);
        }
        let mut sb = v4(&uuid);
        put(&mut sb, 240, &hint.to_be_bytes());
        let volume = with_external_log(sb, log.bytes, blocks);
        let found = state(&volume);
        let ends = found.ends().copied().expect("records");
        prop_assert_eq!((ends.head, ends.current, ends.last), (LogBlock(head), current, last.block()));
        prop_assert_eq!(found.is_dirty(), Some(!unmount));
        prop_assert_eq!(ends.partial.is_some(), torn);
        prop_assert_eq!(probe(&volume), found.clone());
        if !unmount {
            prop_assert_eq!(ends.tail, tail.block());
            let whole = Records::new(&volume, found.area.expect("given"), ends.tail, ends.head);
            let records: Vec<Record> = whole.collect::<Result<_, _>>().expect("readable");
            prop_assert_eq!(records.len(), keep.min(bodies.len() - 1) + 1);
            prop_assert!(records.iter().all(|r| r.faults.is_empty()));
        }
    }

    /// Damage anywhere in the headers: an answer, no panic, no endless walk.
    #[test]
    fn any_damage_is_answered(
        image in prop_oneof![Just(FROZEN), Just(ABSURD)],
        damage in proptest::collection::vec((0usize..200, 0usize..330, any::<u8>()), 1..40),
    ) {
        let (sb, mut blocks) = parts(image);
        for (block, byte, value) in damage {
            if let Some(at) = blocks.get_mut(block * 512 + byte) {
                *at = value;
            }
        }
        let volume = with_external_log(sb, blocks, 4096);
        let log = state(&volume);
        let _ = verify(&volume, &log);
        if let Some(records) = Records::live(&volume, &log) {
            prop_assert!(records.count() <= 4096);
        }
    }
}
