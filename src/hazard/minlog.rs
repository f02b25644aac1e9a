//! The smallest log that 7.2 mounts: the largest reservation of any transaction, times three, in blocks
//! (`xfs_log_calc_minimum_size`). Everything follows from the superblock. Checked against `logres` of xfs_db 7.2 and
//! against mounts one block below and at the minimum.
//!
//! A reservation is a number of buffers and inodes, each with what the log needs around it. Names follow the kernel's
//! `xfs_trans_resv.c`; numbers are bytes unless they count blocks.

use super::Facts;

/// What the log adds to each buffer: its format and chunk header, rounded up.
const BUFFER: u128 = 128;
/// Quota records of a transaction: 6 x (inode-less dquot item 24 + 104).
const DQUOT: u128 = 768;

fn levels((leaf, node): (u128, u128), records: u128) -> u128 {
    let mut blocks = records.div_ceil(leaf.max(1));
    let mut height = 1;
    while blocks > 1 {
        blocks = blocks.div_ceil(node.max(2));
        height += 1;
    }
    height
}

/// Sizes of btrees, clusters and so on.
struct Sizes {
    block: u128,
    sector: u128,
    inode: u128,
    v5: bool,
    finobt: bool,
    rmap: bool,
    reflink: bool,
    rt: bool,
    zoned: bool,
    rt_rmap: u128,
    rt_refcount: u128,
    parent: bool,
    metadir: bool,
    long_header: u128,
    alloc_most: u128,
    alloc: u128,
    inobt: u128,
    rmap_levels: u128,
    refcount: u128,
    data: u128,
    attr: u128,
    cluster: u128,
    chunk: u128,
    rextsize: u128,
    summary: u128,
    directory: u128,
}

/// A reservation: bytes, and how often in a row.
type Reservation = (u128, u128);

/// Blocks of the realtime summary: of the section, or of each group (`xfs_rtsummary_blockcount`). Without groups by the
/// figures of the superblock, as kernels before 6.8 do; later ones refuse figures that are wrong.
fn summary(f: &Facts) -> u128 {
    let sb = &f.sb;
    if f.features.has_zoned() {
        return 0;
    }
    if !f.features.has_metadir() {
        return (4 * (u128::from(sb.rextslog) + 1) * u128::from(sb.rbmblocks.0)).div_ceil(u128::from(f.block()).max(1));
    }
    if !f.rt() {
        return 0;
    }
    let words = u128::from(f.block().saturating_sub(48) / 4).max(1);
    let levels = u128::from(sb.rgextents.checked_ilog2().unwrap_or(0)) + 1;
    (u128::from(sb.rgextents).div_ceil(words * 32) * levels).div_ceil(words)
}

impl Sizes {
    fn new(f: &Facts) -> Self {
        let sb = &f.sb;
        let block = u128::from(sb.blocksize);
        let v5 = f.v5();
        let (short, long) = if v5 { (56, 72) } else { (16, 24) };
        let limits = |header: u128, leaf: u128, node: u128| ((block - header) / leaf / 2, (block - header) / node / 2);
        let rmap = f.features.has_rmapbt();
        let reflink = f.features.has_reflink();
        let agblocks = u128::from(sb.agblocks);
        let rmap_limits = limits(56, 24, 44);
        let rmap_levels = match (rmap, reflink) {
            (false, _) => 0,
            (true, false) => levels(rmap_limits, agblocks),
            // Shared blocks may have any number of owners: as high as the AG can hold.
            (true, true) => {
                let (mut node, mut left, mut height) = (2u128, agblocks.saturating_sub(1), 1);
                while node < left {
                    left -= node;
                    node *= rmap_limits.1.max(2);
                    height += 1;
                }
                height
            }
        };
        let bmbt = limits(long, 16, 16);
        let fork = |most: u128, root: u128| {
            let mut blocks = most.div_ceil(bmbt.0.max(1));
            let mut height = 1;
            while blocks > 1 {
                blocks = if blocks <= root { 1 } else { blocks.div_ceil(bmbt.1.max(2)) };
                height += 1;
            }
            height
        };
        let (data, attr) =
            if f.features.has_nrext64() { ((1 << 48) - 1, (1 << 32) - 1) } else { ((1 << 31) - 1, (1 << 15) - 1) };
        let mut raw = 8192u128;
        if v5 {
            let scaled = raw * (u128::from(sb.inodesize) / 256);
            if u128::from(sb.inoalignmt.0) >= scaled >> sb.blocklog {
                raw = scaled;
            }
        }
        // Btrees of realtime groups root in an inode of the data device, which bounds their height.
        let capacity = |limits: (u128, u128)| {
            let (mut node, mut left, mut height) = (2u128, u128::from(sb.dblocks.0).saturating_sub(1), 1);
            while node < left {
                left -= node;
                node *= limits.1.max(2);
                height += 1;
            }
            height
        };
        let grouped = f.rt() && f.features.has_metadir();
        let (rmap_rt, refcount_rt) = (limits(72, 24, 48), limits(72, 12, 12));
        let group = u128::from(sb.rgextents) * u128::from(sb.rextsize);
        let rt_rmap = match (grouped && rmap, reflink) {
            (false, _) => 0,
            (true, true) => capacity(rmap_rt) + 1,
            (true, false) => capacity(rmap_rt).min(levels(rmap_rt, group)) + 1,
        };
        let rt_refcount = if grouped && reflink {
            capacity(refcount_rt).min(levels(refcount_rt, u128::from(sb.rgextents))) + 1
        } else {
            0
        };
        Self {
            zoned: f.features.has_zoned(),
            rt_rmap,
            rt_refcount,
            block,
            sector: u128::from(sb.sectsize),
            inode: u128::from(sb.inodesize),
            v5,
            finobt: f.features.has_finobt(),
            rmap,
            reflink,
            rt: f.rt(),
            parent: f.features.has_parent(),
            metadir: f.features.has_metadir(),
            long_header: long,
            alloc_most: (block - short) / 8,
            alloc: levels(limits(short, 8, 12), agblocks.div_ceil(2)),
            inobt: levels(limits(short, 16, 8), (1u128 << (u32::from(sb.inopblog) + u32::from(sb.agblklog))) >> 6),
            rmap_levels,
            refcount: if reflink { levels(limits(56, 12, 8), agblocks) } else { 0 },
            data: fork(data, 3),
            attr: fork(attr, 2),
            cluster: if raw > block { raw >> sb.blocklog } else { 1 } * block,
            chunk: u128::from(sb.inopblock.max(64)) >> sb.inopblog,
            rextsize: u128::from(sb.rextsize.max(1)),
            summary: summary(f),
            directory: 1 << sb.dirblklog,
        }
    }

    fn buffers(&self, n: u128, size: u128) -> u128 {
        n * (size + BUFFER)
    }
    fn inodes(&self, n: u128) -> u128 {
        n * (48 + 56 + self.inode + 2 * self.long_header)
    }
    /// Blocks of the free space and reverse mapping btrees that `n` frees change.
    fn free_blocks(&self, n: u128, rmap_levels: u128) -> u128 {
        n * 2 * (2 * self.alloc - 1) + if self.rmap { n * (2 * rmap_levels - 1) } else { 0 }
    }
    fn refcount_blocks(&self, n: u128) -> u128 {
        n * (2 * self.refcount).saturating_sub(1)
    }
    fn rt_blocks(&self, n: u128) -> u128 {
        let header = if self.metadir { 48 } else { 0 };
        let per_block = 8 * (self.block - header);
        let bitmap = if self.zoned { 0 } else { (((1u128 << 21) - 1) / self.rextsize).div_ceil(per_block) };
        (n * (bitmap + 1)).max(n * (2 * self.rt_rmap).saturating_sub(1))
    }
    /// Blocks a btree grows by when `blocks` are added at a height of `levels`.
    fn extended(&self, blocks: u128, levels: u128) -> u128 {
        let most = self.alloc_most;
        blocks.div_ceil((most - most / 2).max(1)) * levels.saturating_sub(1)
    }

    /// Every reservation that can be the largest, in the kernel's order, and that of an attribute of the largest size.
    /// `old` is the variant that keeps the minimum of file systems without parent pointers where it always was.
    fn table(&self, rmap_levels: u128, old: bool) -> (Vec<Reservation>, u128) {
        let (bs, se) = (self.block, self.sector);
        let (r, ino) = (|n, z| self.buffers(n, z), |n| self.inodes(n));
        let af = |n| self.free_blocks(n, rmap_levels);
        let inobt = r(self.inobt, bs) + r(af(1), bs);
        let finobt = if self.finobt { inobt } else { 0 };
        let chunk_alloc = r(af(1), bs) + if self.v5 { 0 } else { r(self.chunk, bs) };
        let chunk_free = r(af(1), bs) + r(self.chunk, 0);
        let efi = |n| r(2 * n + 1, se) + r(af(n), bs);
        let rt_efi = |n| if self.rt { r(2 * n + 1, se) + r(self.rt_blocks(n), bs) + r(af(n), bs) } else { 0 };
        let refc = |n| {
            let data = if self.reflink { r(n, se) + r(self.refcount_blocks(n), bs) } else { 0 };
            let rt = if self.rt_refcount > 0 { ino(1) + r(n * (2 * self.rt_refcount - 1), bs) } else { 0 };
            data.max(rt)
        };
        let data = self.data;
        let write = |old: bool| {
            let first = ino(1) + r(data, bs) + r(3, se) + r(af(2), bs);
            let rt =
                if self.rt { ino(1) + r(data, bs) + r(3, se) + r(self.rt_blocks(1), bs) + r(af(1), bs) } else { 0 };
            let third = r(5, se) + r(af(2), bs);
            if old {
                let more = if self.reflink { r(self.refcount_blocks(2), bs) } else { 0 };
                DQUOT + (first + more).max(rt).max(third + more)
            } else {
                DQUOT + refc(1).max(first).max(rt).max(third)
            }
        };
        let truncate = |old: bool| {
            let (first, rt) = (ino(1) + r(data + 1, bs), rt_efi(2));
            if old {
                let more = if self.reflink { r(self.refcount_blocks(4), bs) } else { 0 };
                DQUOT + first.max(efi(4) + more).max(rt)
            } else {
                DQUOT + refc(2).max(first).max(efi(4)).max(rt)
            }
        };
        let bit = u128::from;
        let count = 2 + bit(self.reflink || self.rmap) + bit(self.reflink) + bit(self.rmap);
        let counts = match (old, self.reflink, self.rmap) {
            (true, true, _) => 8,
            (true, false, true) => 2,
            _ => count,
        };
        let fsb = self.directory;
        let dir_bmap = self.extended(fsb, data);
        let dir = 7 * fsb + 7 * dir_bmap + 1;
        let parent = |n: u128| if self.parent { n } else { 0 };
        let (link, replace) = (parent(40 + 12 + 256), parent(40 + 2 * (12 + 256)));
        let attr_set = DQUOT + ino(1) + r(1, se) + r(5, bs);
        let attr_rm = DQUOT + (ino(1) + r(5, bs) + bs * self.attr + r(data, 0)).max(r(5, se) + r(af(2), bs));
        let attr_inval = (ino(1) + r(self.attr, bs)).max(r(9, se) + r(af(4), bs));
        let attr_set_rt = r(1, se) + r(self.attr, bs);
        let iunlink = |clusters: u128| r(1, se) + clusters * self.cluster;
        let ialloc = r(2, se) + se + chunk_alloc + inobt + finobt;
        let rename = DQUOT
            + (replace + 2 * link).max(2 * replace)
            + (ino(5) + r(2 * dir, bs)).max(efi(3)).max(parent(attr_set.max(attr_rm)));
        let create = DQUOT + link + ialloc.max(ino(2) + r(1, se) + bs + r(dir, bs) + finobt).max(parent(attr_set));
        let table = vec![
            (write(old), counts),
            (truncate(old), counts),
            (write(old) + r(1, bs - 1), counts),
            (attr_set, 3),
            (attr_rm, 3),
            (attr_inval, 1),
            (attr_set_rt, 1),
            (rename, 2 + parent(3)),
            (DQUOT + iunlink(2) + link + (ino(2) + r(dir, bs)).max(efi(1)).max(parent(attr_set)), 2 + parent(3)),
            (DQUOT + iunlink(1) + link + (ino(2) + r(dir, bs)).max(efi(2)).max(parent(attr_rm)), 2 + parent(3)),
            (create + r(1, 1024), 3 + parent(3)),
            (create, 2 + parent(3)),
            (create, 3 + parent(3)),
            (DQUOT + ialloc + iunlink(1), 2),
            (DQUOT + ino(1) + r(3, se) + iunlink(2) + chunk_free + inobt + finobt, 2),
            (DQUOT + ino(1) + r(2, se) + r(1, fsb * bs) + r(dir_bmap + 1, bs) + r(af(1), bs), 2),
            (r(3, se) + r(af(1), bs), 2),
            (r(2, se) + r(data, bs) + ino(1) + r(af(1), bs), 2),
            (r(1, se) + ino(2) + r(1, bs) + r(1, self.summary * bs), 1),
            // The end of an atomic write: always as the running kernel reserves a truncation.
            (truncate(false), count),
        ];
        let size = bs / 2 + bs / 4 - 257;
        let blocks = size.div_ceil(bs);
        let attr_blocks = 5
            + 5 * self.extended(1, self.attr)
            + blocks
            + self.extended(if self.parent { blocks } else { size }, self.attr);
        (table, attr_set + attr_set_rt * attr_blocks)
    }
}

/// The smallest log in blocks that 7.2 mounts with this superblock; `None` where its sizes do not hold.
pub fn minimum_log_blocks(f: &Facts) -> Option<u64> {
    let impossible = f.sb.blocksize < 1024 && (f.v5() || f.features.has_rmapbt());
    // Reverse mapping beside a classic section, which 7.2 alone lets through, makes its arithmetic wrap.
    let wraps = f.classic_rt() && f.features.has_rmapbt();
    if !f.sizes_hold() || impossible || wraps || f.sb.logsunit > 256 << 10 {
        return None;
    }
    let sizes = Sizes::new(f);
    let (running, attr) = sizes.table(sizes.rmap_levels, false);
    let table = if sizes.parent {
        running.clone()
    } else {
        let levels = if sizes.rmap && sizes.reflink { 9 } else { sizes.rmap_levels };
        let mut table = sizes.table(levels, true).0;
        if let (Some(last), Some(now)) = (table.last_mut(), running.last()) {
            *last = *now;
        }
        table
    };
    let product = |(bytes, count): Reservation| bytes * count.max(1);
    // The first of the largest wins.
    let mut best = table.into_iter().rev().max_by_key(|r| product(*r))?;
    if attr > product(best) {
        best = (attr, 3);
    }
    let logv2 = f.features.has_logv2();
    let sunit = u128::from(f.sb.logsunit);
    let buffer = if logv2 { sunit.max(32768) } else { 32768 };
    let headers = 512 * buffer.div_ceil(32768);
    let mut unit = best.0 + 40;
    let mut records = unit.div_ceil(buffer - headers);
    unit += 12 * records;
    while records == 0 || unit.div_ceil(buffer - headers) > records {
        unit += 12;
        records += 1;
    }
    unit += headers * records + headers;
    let round = match (logv2 && sunit > 1, f.sb.logsectsize) {
        (true, _) => sunit,
        (false, 0) => 512,
        (false, size) => u128::from(size),
    };
    unit += 2 * round;
    unit *= best.1.max(1);
    let sectors = unit.div_ceil(512);
    let total = if logv2 && sunit > 1 {
        let stripe = sunit.div_ceil(512);
        sectors.div_ceil(stripe) * stripe + 2 * stripe
    } else {
        // Twice 512 bytes are meant; the kernel adds them as sectors.
        sectors + 1024
    };
    u64::try_from((total * 3).div_ceil(sizes.block / 512)).ok()
}
