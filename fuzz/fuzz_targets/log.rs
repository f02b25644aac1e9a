//! Any bytes as operations of a dirty log: what the records hold is put together to transactions, and to the places that
//! recovery would write. The superblock is one without checksums, so that a record needs none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};
use xfsinspect::source::MemorySource;
use xfsinspect::units::{ByteOffset, Device, Ino};
use xfsinspect::volume::{Choice, Devices, Volume};
use xfsinspect::walk::log::{Changes, state, verify};

/// Blocks of the log, and of a record's body.
const BLOCKS: usize = 4096;
const BODY: usize = 8;

static SUPERBLOCK: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let packed = include_bytes!("../../testimages/log-frozen.blocks.zst");
    let mut sb = zstd::decode_all(&packed[..]).expect("packed well")[..512].to_vec();
    sb[100..102].copy_from_slice(&0xb4b4u16.to_be_bytes());
    sb[48..56].fill(0);
    let size = u32::from_be_bytes(sb[4..8].try_into().expect("four"));
    sb[96..100].copy_from_slice(&(BLOCKS as u32 * 512 / size).to_be_bytes());
    sb
});

fuzz_target!(|data: &[u8]| {
    let mut log = vec![0; BLOCKS * 512];
    // A transaction is open at once: its start, then its header.
    let mut operations = vec![0, 0, 0, 0, 0, 0, 0, 0, 0x69, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0x69, 0, 0, 0];
    operations.extend(0x5452_414eu32.to_le_bytes());
    operations.extend([0; 12]);
    operations.extend_from_slice(data);
    for (i, body) in operations.chunks(BODY * 512).take(BLOCKS / (BODY + 1) - 1).enumerate() {
        let at = i * (BODY + 1);
        let record = &mut log[at * 512..(at + BODY + 1) * 512];
        let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
        for (at, word) in
            [(0, 0xfeed_babe), (4, 1), (8, 2), (12, BODY as u32 * 512), (16, 1), (20, at as u32), (24, 1), (40, 9999), (300, 1), (320, 32768u32)]
        {
            put(at, &word.to_be_bytes());
        }
        put(304, &SUPERBLOCK[32..48]);
        put(512, body);
        for block in 0..BODY {
            // The first word of each block is the cycle; what stood there is kept in the header.
            let first: [u8; 4] = record[(1 + block) * 512..][..4].try_into().expect("four");
            record[44 + block * 4..][..4].copy_from_slice(&first);
            record[(1 + block) * 512..][..4].copy_from_slice(&1u32.to_be_bytes());
        }
    }
    let mut devices = Devices::data_only(Arc::new(MemorySource::new(SUPERBLOCK.clone())));
    devices.log = Some(Arc::new(MemorySource::new(log)));
    let volume = Volume::open(devices, Choice::default()).expect("a superblock");
    let log = state(&volume);
    let recovery = verify(&volume, &log).expect("readable").expect("dirty");
    if let Ok((changes, _)) = Changes::of(&volume, &log, &recovery) {
        let _ = changes.touch(Device::Data, ByteOffset(0), 512) || changes.touch_inode(volume.geometry(), Ino(128));
    }
});
