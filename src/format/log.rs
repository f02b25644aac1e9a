//! The journal on disk: records in 512-byte blocks, written round and round. Each record has a header block (version 2
//! logs: one for every 32 KiB of it), then its body. The first word of every block, header or body, is the number of
//! the round ("cycle") that wrote it; the words that stood there before are kept in the headers.
//! `struct xlog_rec_header`, `xlog_rec_ext_header`, `xlog_op_header` (xfs_log_format.h); `xlog_valid_rec_header`
//! (xfs_log_recover.c) checks them in recovery.
//!
//! Record and operation headers are big-endian; what operations carry (items, transaction headers) is in the byte
//! order of the machine that wrote it, which `fmt` of the record tells.

use super::on_disk::{Crc, Uuid, on_disk};
use super::{bits, checksum};
use crate::units::Lsn;

/// First word of a record header: `XLOG_HEADER_MAGIC_NUM`.
pub const MAGIC: u32 = 0xfeed_babe;
/// Byte of the checksum in a record header.
pub const CRC_OFFSET: usize = 32;
/// Bytes of a log block.
pub const BLOCK: usize = 512;
/// Bytes of a record for which one header block keeps the first words (`XLOG_HEADER_CYCLE_SIZE`).
pub const HEADER_CYCLE_SIZE: u32 = 32 * 1024;
/// Largest record of version 1 logs (`XLOG_BIG_RECORD_BSIZE`).
pub const BIG_RECORD: u32 = 32 * 1024;
/// Largest record of version 2 logs (`XLOG_MAX_RECORD_BSIZE`).
pub const MAX_RECORD: u32 = 256 * 1024;
/// Records that can be on their way to disk at once (`XLOG_MAX_ICLOGS`).
pub const MAX_ICLOGS: u32 = 8;
/// Largest log (`XFS_MAX_LOG_BYTES` rounded up).
pub const MAX_LOG_BYTES: u64 = 2 << 30;
/// Bytes of a record header that the checksum covers (`XLOG_REC_SIZE`); written by a 32-bit x86, four fewer.
pub const HEADER_SIZES: [usize; 2] = [328, 324];
/// Bytes of an extended header that the checksum covers (`XLOG_REC_EXT_SIZE`).
pub const EXT_SIZE: usize = 260;

/// `fmt`: written by a little-endian Linux, a big-endian one, or IRIX.
pub const FORMATS: [(u32, &str); 4] =
    [(0, "unknown (IRIX)"), (1, "Linux, little-endian"), (2, "Linux, big-endian"), (3, "IRIX, big-endian")];

on_disk! {
    /// Header of a log record: its first block (`struct xlog_rec_header`).
    pub struct RecordHeader, size 512 {
        /// 0xfeedbabe.
        0 magicno: u32 [.hex()],
        /// Round of the log that wrote this record.
        4 cycle: u32,
        /// Log version, 1 or 2.
        8 version: u32,
        /// Bytes of the body, headers not counted.
        12 len: u32,
        /// Log sequence number of this record: cycle and block.
        16 lsn: u64 [.hex()],
        /// Oldest record still needed when this one was written.
        24 tail_lsn: u64 [.hex()],
        /// Checksum of headers and body; 0 where none was made (V4, mkfs).
        32 crc: Crc,
        /// Block of the record before.
        36 prev_block: u32,
        /// Operations that begin in this record.
        40 num_logops: u32,
        /// First words of the first 64 blocks of the body, which hold the cycle instead.
        44 cycle_data: [u32; 64] [.hex()],
        /// Byte order of what operations carry: 1 little-endian, 2 big-endian Linux, 3 IRIX.
        300 fmt: u32,
        /// Identity of the file system.
        304 fs_uuid: Uuid,
        /// Size of the in-core log buffer that held it: how many header blocks there are.
        320 size: u32,
        /// Padding on all machines but 32-bit x86.
        324 pad0: u32 [.hex().hidden()],
        /// Zeros.
        328 reserved: [u8; 184] [.hex().hidden()],
    }

    /// Further header block of a record of more than 32 KiB, version 2 logs (`struct xlog_rec_ext_header`).
    pub struct RecordExtHeader, size 512 {
        /// Round of the log that wrote this record.
        0 cycle: u32,
        /// First words of the next 64 blocks of the body.
        4 cycle_data: [u32; 64] [.hex()],
        /// Zeros.
        260 reserved: [u8; 252] [.hex().hidden()],
    }

    /// Header of an operation in the body of a record (`struct xlog_op_header`).
    pub struct OpHeader, size 12 {
        /// Transaction it belongs to.
        0 tid: u32 [.hex()],
        /// Bytes that follow.
        4 len: u32,
        /// Who wrote it: 0x69 a transaction, 0xaa the log itself.
        8 clientid: u8 [.hex()],
        /// What it is.
        9 flags: u8 [.hex()] {
            /// Unmount record.
            unmount: 2 + 1,
            /// End of a continued region.
            end: 3 + 1,
            /// Continues a region from the record before.
            was_cont: 4 + 1,
            /// Goes on in the next record.
            cont: 5 + 1,
            /// Commits the transaction.
            commit: 6 + 1,
            /// Starts a transaction.
            start: 7 + 1,
        },
        /// Zeros.
        10 res2: u16 [.hex()],
    }
}

/// `flags` of an operation: it starts a transaction (`XLOG_START_TRANS`).
pub const OP_START: u8 = 0x01;
/// It commits one (`XLOG_COMMIT_TRANS`).
pub const OP_COMMIT: u8 = 0x02;
/// Its region goes on in the next record (`XLOG_CONTINUE_TRANS`).
pub const OP_CONTINUE: u8 = 0x04;
/// It goes on with a region of the record before (`XLOG_WAS_CONT_TRANS`).
pub const OP_WAS_CONT: u8 = 0x08;
/// A region ends that was continued (`XLOG_END_TRANS`).
pub const OP_END: u8 = 0x10;
/// An unmount record (`XLOG_UNMOUNT_TRANS`).
pub const OP_UNMOUNT: u8 = 0x20;
/// `clientid` of operations: a transaction, or the log itself.
pub const CLIENTS: [u8; 2] = [0x69, 0xaa];

/// Does a record header begin here?
pub fn is_header(block: &[u8]) -> bool {
    bits::be32(block, 0) == Some(MAGIC)
}

/// The cycle stamped on a log block (`xlog_get_cycle`): its first word, or the second of a record header.
pub fn cycle(block: &[u8]) -> Option<u32> {
    match bits::be32(block, 0)? {
        MAGIC => bits::be32(block, 4),
        cycle => Some(cycle),
    }
}

impl RecordHeader {
    /// Log sequence number of this record.
    pub fn lsn(&self) -> Lsn {
        Lsn(self.lsn)
    }

    /// Log sequence number of the oldest record still needed.
    pub fn tail(&self) -> Lsn {
        Lsn(self.tail_lsn)
    }

    /// Header blocks of this record (`xlog_logrec_hblks`). `size` counts as signed, as in the kernel: an absurd one
    /// can be "negative", then there is one block.
    pub fn header_blocks(&self, v2_log: bool) -> u32 {
        let signed = i32::try_from(self.size).is_ok();
        if v2_log && self.version & 2 != 0 && signed && self.size > HEADER_CYCLE_SIZE {
            self.size.div_ceil(HEADER_CYCLE_SIZE)
        } else {
            1
        }
    }

    /// Blocks of the body.
    pub fn body_blocks(&self) -> u32 {
        self.len.div_ceil(512)
    }
}

/// Checksum of a record from its header blocks and `len` bytes of body (`xlog_cksum`), by both sizes that the header
/// has been known to have. `None` where the bytes are too few.
pub fn checksums(headers: &[u8], body: &[u8], v2_log: bool) -> Option<[u32; 2]> {
    let extended = match body.len().div_ceil(usize::try_from(HEADER_CYCLE_SIZE).ok()?) {
        n if v2_log => n.saturating_sub(1),
        _ => 0,
    };
    let mut sums = [0; 2];
    for (sum, size) in sums.iter_mut().zip(HEADER_SIZES) {
        let mut crc = checksum::compute(headers.get(..size)?, CRC_OFFSET)?;
        for block in headers.chunks(BLOCK).skip(1).take(extended) {
            crc = crc32c::crc32c_append(crc, block.get(..EXT_SIZE)?);
        }
        *sum = crc32c::crc32c_append(crc, body);
    }
    Some(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Structure;

    #[test]
    fn cycles_of_headers_and_bodies() {
        let mut block = vec![0u8; 512];
        block[..8].copy_from_slice(&[0xfe, 0xed, 0xba, 0xbe, 0, 0, 0, 7]);
        assert!(is_header(&block));
        assert_eq!(cycle(&block), Some(7));
        block[0] = 0;
        assert_eq!(cycle(&block), Some(0x00ed_babe));
        assert_eq!(cycle(&[1, 2]), None);
    }

    #[test]
    fn header_blocks_as_the_kernel_counts_them() {
        let mut header = RecordHeader::decode(&[0; 512]).expect("long enough");
        for (version, size, blocks) in
            [(2, 0, 1), (2, 32768, 1), (2, 32769, 2), (2, 262_144, 8), (1, 262_144, 1), (2, 0xffff_f000, 1)]
        {
            (header.version, header.size) = (version, size);
            assert_eq!(header.header_blocks(true), blocks, "{version} {size:#x}");
            assert_eq!(header.header_blocks(false), 1);
        }
    }
}
