//! Small damaged file systems from a few bytes: what the fuzz targets `check` and `print` and tests/patches.rs run on.
//!
//! An image is too large to be a fuzzer's input, so the input is a list of patches to one of the images of
//! testimages/tiny, which lie in memory without their holes. The first byte picks the image, modulo their count, and what
//! is left of it a part of what is to be done ([`Damaged::part`]); eight bytes are a patch:
//!
//! | byte | meaning |
//! |---|---|
//! | 0–1 | the metadata block: a number in [`Base::units`], modulo their count |
//! | 2–3 | the field in it, counted as `show` lists them, or the byte where bit 5 of byte 4 is set; modulo their count |
//! | 4 | bits 0–3: what is done ([`OPERATIONS`]); bit 4: the checksum is left wrong; bit 5: see above |
//! | 5–7 | the operand, signed, little-endian |
//!
//! Checksums are mended unless bit 4 says otherwise, so that what lies behind them is reached.

#![allow(dead_code)] // each user takes a part of it

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Arc, OnceLock};
use xfsinspect::format::{Body, Format, Item, Node, Type, bits, checksum, guess, layout};
use xfsinspect::source::Source;
use xfsinspect::units::{AgNumber, ByteOffset, Device};
use xfsinspect::volume::{AgHeader, Choice, Devices, Volume};
use xfsinspect::walk::extents::ForkMap;
use xfsinspect::walk::{Walk, log};

/// An image in memory: 4 KiB pages, none for holes.
struct Image {
    length: u64,
    pages: Vec<Option<Box<[u8; PAGE]>>>,
}

const PAGE: usize = 4096;

impl Image {
    fn unpack(packed: &[u8]) -> Self {
        let mut decoder = zstd::stream::read::Decoder::new(packed).expect("zstd");
        decoder.window_log_max(31).expect("a window");
        let (mut pages, mut length) = (Vec::new(), 0);
        loop {
            let mut page = Box::new([0u8; PAGE]);
            let mut filled = 0;
            while filled < PAGE {
                let n = decoder.read(&mut page[filled..]).expect("a packed image");
                if n == 0 {
                    break;
                }
                filled += n;
            }
            length += filled as u64;
            if filled == 0 {
                return Self { length, pages };
            }
            pages.push(page.iter().any(|&byte| byte != 0).then_some(page));
        }
    }
}

impl Source for Image {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
        let end = offset.0.checked_add(buf.len() as u64).filter(|&end| end <= self.length);
        if end.is_none() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut at = offset.0 as usize;
        let mut rest = buf;
        while !rest.is_empty() {
            let within = at % PAGE;
            let n = rest.len().min(PAGE - within);
            let (piece, more) = rest.split_at_mut(n);
            match &self.pages[at / PAGE] {
                Some(page) => piece.copy_from_slice(&page[within..within + n]),
                None => piece.fill(0),
            }
            (at, rest) = (at + n, more);
        }
        Ok(())
    }
}

/// A device with some of its metadata blocks replaced.
struct Patched {
    beneath: Arc<dyn Source>,
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl Source for Patched {
    fn len(&self) -> u64 {
        self.beneath.len()
    }

    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
        self.beneath.read_at(offset, buf)?;
        let (first, end) = (offset.0, offset.0 + buf.len() as u64);
        // No unit is larger than 64 KiB.
        for (&at, bytes) in self.blocks.range(first.saturating_sub(1 << 16)..end) {
            let (from, to) = (first.max(at), end.min(at + bytes.len() as u64));
            if from < to {
                let source = &bytes[(from - at) as usize..(to - at) as usize];
                buf[(from - first) as usize..(to - first) as usize].copy_from_slice(source);
            }
        }
        Ok(())
    }
}

/// A metadata block of an image that can be patched.
pub struct Unit {
    device: Device,
    byte: u64,
    length: usize,
    /// What it is.
    pub kind: Type,
    /// Byte of its checksum.
    crc: Option<usize>,
    /// Its fields: first bit and bits.
    fields: Vec<(u64, u32)>,
}

impl Unit {
    /// How many fields it has.
    pub fn fields(&self) -> u16 {
        u16::try_from(self.fields.len()).unwrap_or(u16::MAX)
    }
}

/// An image and its metadata blocks.
pub struct Base {
    /// Its name.
    pub name: &'static str,
    /// The file system without any patch.
    pub sound: Volume,
    /// Metadata blocks, in the order of the devices.
    pub units: Vec<Unit>,
}

macro_rules! images {
    ($( $name:literal $(rt $rt:literal)? ),* $(,)?) => {
        /// The images, packed.
        const PACKED: &[(&str, &[u8], Option<&[u8]>)] = &[ $( (
            $name,
            include_bytes!(concat!("../testimages/tiny/", $name, ".img.zst")),
            { let rt: &[&[u8]] = &[ $( include_bytes!(concat!("../testimages/tiny/", $rt)) )? ]; rt.first().copied() },
        ) ),* ];
    };
}

images! {
    "tiny-v4", "tiny-v4-rt" rt "tiny-v4-rt.rt.img.zst", "tiny-old", "tiny-v5", "tiny-64k", "tiny-cut",
    "tiny-rt" rt "tiny-rt.rt.img.zst", "tiny-groups" rt "tiny-groups.rt.img.zst",
    "tiny-rmap-groups" rt "tiny-rmap-groups.rt.img.zst", "tiny-zoned",
}

/// How many images there are.
pub const BASES: usize = PACKED.len();

/// Image `n`, modulo their count. Unpacked and gone through when it is asked for first.
pub fn base(n: usize) -> &'static Base {
    static READ: [OnceLock<Base>; BASES] = [const { OnceLock::new() }; BASES];
    READ[n % BASES].get_or_init(|| Base::read(n % BASES))
}

/// Unpacks all images: before the first input, so that none seems slow.
pub fn read_all() {
    for n in 0..BASES {
        let _ = base(n);
    }
}

impl Base {
    fn read(n: usize) -> Self {
        let (name, data, rt) = PACKED[n];
        let rt = rt.map(|packed| Arc::new(Image::unpack(packed)) as Arc<dyn Source>);
        let devices = Devices { data: Arc::new(Image::unpack(data)), log: None, rt };
        let sound = Volume::open(devices, Choice::default()).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let mut units = Units { volume: &sound, units: BTreeMap::new() };
        units.collect();
        let units = units.units.into_values().collect();
        Self { name, sound, units }
    }
}

/// Finds the metadata blocks of an image.
struct Units<'v> {
    volume: &'v Volume,
    units: BTreeMap<(Device, u64), Unit>,
}

impl Units<'_> {
    fn collect(&mut self) {
        let volume = self.volume;
        let context = volume.context();
        let headers = [
            (AgHeader::Superblock, Type::Sb),
            (AgHeader::Agf, Type::Agf),
            (AgHeader::Agi, Type::Agi),
            (AgHeader::Agfl, Type::Agfl),
        ];
        for ag in 0..volume.geometry().ag_count {
            for (header, kind) in headers {
                let block = volume.ag_header(AgNumber(ag), header).expect("a header");
                self.add(Device::Data, block.place.byte.0, kind, &block.bytes);
            }
        }
        // Everything that carries a magic number. Headers were added before, content of files has none, the log holds
        // copies.
        let log = volume.geometry().log_start.and_then(|start| volume.geometry().block_byte(start)).map_or(0, |b| b.0);
        let log = log..log + u64::from(volume.geometry().log_blocks) * volume.geometry().block_size();
        let block_size = volume.geometry().block_size();
        for device in [Device::Data, Device::Rt] {
            let Some(source) = volume.devices().get(device) else { continue };
            let mut bytes = vec![0; context.dir_block_size.max(context.block_size) as usize];
            let blocks = source.len() / block_size;
            for byte in (0..blocks).map(|block| block * block_size) {
                if device == Device::Data && log.contains(&byte) {
                    continue;
                }
                let whole = bytes.len().min((source.len() - byte) as usize);
                source.read_at(ByteOffset(byte), &mut bytes[..whole]).expect("an image");
                self.block(device, byte, &bytes[..whole]);
            }
        }
        self.without_magic();
        self.journal();
    }

    fn block(&mut self, device: Device, byte: u64, bytes: &[u8]) {
        let context = self.volume.context();
        let Some(&kind) = guess::by_magic(bytes).first() else { return };
        match kind {
            Type::Sb | Type::Agf | Type::Agi | Type::Agfl => {}
            Type::Inode => {
                let size = context.inode_size as usize;
                for (i, inode) in bytes[..context.block_size as usize].chunks_exact(size).enumerate() {
                    // Free inodes are all alike: two of 64 are enough.
                    let in_use = bits::be16(inode, 2) != Some(0);
                    if bits::be16(inode, 0) == Some(0x494e) && (in_use || (byte / 512 + i as u64) % 32 == 3) {
                        self.add(device, byte + (i * size) as u64, kind, inode);
                    }
                }
            }
            Type::Dqblk => {
                // Of the records of a block those that hold something.
                for (i, record) in bytes[..context.block_size as usize].chunks_exact(136).enumerate() {
                    if i == 0 || record[8..104].iter().any(|&byte| byte != 0) {
                        self.add(device, byte + i as u64 * 136, kind, record);
                    }
                }
            }
            _ => {
                let size = kind.size(context) as usize;
                if let Some(bytes) = bytes.get(..size) {
                    self.add(device, byte, kind, bytes);
                }
            }
        }
    }

    /// Bitmap and summary without realtime groups.
    fn without_magic(&mut self) {
        let volume = self.volume;
        let sb = volume.superblock();
        let classic = volume.geometry().realtime.as_ref().is_some_and(|rt| rt.groups.is_none());
        if !classic {
            return;
        }
        let walk = Walk::new(volume);
        for (ino, kind) in [(sb.rbmino, Type::Rtbitmap), (sb.rsumino, Type::Rtsummary)] {
            let inode = walk.inode(ino).expect("the inode");
            let fork = xfsinspect::format::dinode::Fork::Data;
            for extent in ForkMap::read(&walk, inode.inode(), fork, &mut |e| panic!("{e}")).extents() {
                let read = volume.blocks(extent.startblock, extent.blockcount, "realtime metadata").expect("blocks");
                for (i, block) in read.bytes.chunks_exact(volume.context().block_size as usize).enumerate() {
                    self.add(Device::Data, read.place.byte.0 + (i * block.len()) as u64, kind, block);
                }
            }
        }
    }

    /// Sectors of the log around its head and tail, and its first ones.
    fn journal(&mut self) {
        let volume = self.volume;
        let state = log::state(volume);
        let (Some(area), Some(ends)) = (state.area, state.ends()) else { return };
        let near = |at: u32| at.saturating_sub(8)..at.saturating_add(24);
        for block in (0..8).chain(near(ends.tail.0)).chain(near(ends.head.0)) {
            let Some(byte) = area.byte(xfsinspect::units::LogBlock(block)).filter(|_| block < area.blocks) else {
                continue;
            };
            let read = volume.read(Device::Data, byte, 512, "log").expect("a block of the log");
            self.add(Device::Data, byte.0, Type::Log, &read.bytes);
        }
    }

    fn add(&mut self, device: Device, byte: u64, kind: Type, bytes: &[u8]) {
        // No two units overlap: what came first stays.
        let (from, to) = ((device, byte.saturating_sub(1 << 16)), (device, byte + bytes.len() as u64));
        if self.units.range(from..to).any(|(_, unit)| unit.byte + unit.length as u64 > byte) {
            return;
        }
        let context = self.volume.context();
        let mut found = (Vec::new(), None);
        if kind == Type::Log {
            found.0 = (0..64).map(|i| (i * 32, 32)).collect();
        } else {
            fields(&layout(kind, context, bytes), &mut found);
        }
        let (fields, crc) = found;
        let crc = crc.filter(|_| context.has_crc());
        self.units.insert((device, byte), Unit { device, byte, length: bytes.len(), kind, crc, fields });
    }
}

/// Fields of a structure, at most some hundreds, and the byte of its checksum.
fn fields(nodes: &[Node], found: &mut (Vec<(u64, u32)>, Option<usize>)) {
    const MOST: usize = 600;
    /// Elements of one array.
    const EACH: u32 = 48;
    for node in nodes {
        match &node.body {
            Body::Value { format: Format::Crc, .. } => found.1 = found.1.or(Some(node.bit as usize / 8)),
            Body::Value { bits, count, .. } => {
                found.0.extend((0..*count.min(&EACH)).map(|i| (node.bit + u64::from(i * bits), *bits)));
            }
            Body::Records { fields, stride, count, .. } => {
                for i in 0..*count.min(&EACH) {
                    let base = node.bit + u64::from(i * stride);
                    found.0.extend(fields.iter().map(|field| (base + u64::from(field.bit), field.bits)));
                }
            }
            Body::Group(parts) => self::fields(parts, found),
            Body::List { items, .. } => {
                for Item { nodes, .. } in items.iter().take(EACH as usize) {
                    self::fields(nodes, found);
                }
            }
            Body::Empty => {}
        }
        found.0.truncate(MOST);
    }
}

/// What a patch does to a field (or to bytes, from the one named on).
pub const OPERATIONS: &[&str] = &[
    "set to the operand",
    "add the operand",
    "flip the bit that the operand names",
    "all ones",
    "set to the value of the field that the operand names, of the same block",
    "set to the block number, in its AG, of the metadata block that the operand names",
    "set to the block number of the metadata block that the operand names",
    "set to the inode number of the inode at or after the metadata block that the operand names",
    "the whole block becomes the metadata block that the operand names",
    "all bytes from here on become the operand",
    "set to the operand, shifted left by 32",
    "bytes from here on move by the operand",
];

/// At most this many patches are made.
const PATCHES: usize = 64;

/// Steps that a walk over a damaged image may take: some times what the sound ones need.
const STEPS: u64 = 1 << 15;

/// What an input describes.
#[derive(Clone)]
pub struct Damaged {
    /// The file system, limited to few steps; `None` where it does not open, which is an answer, too.
    pub volume: Option<Volume>,
    /// The blocks that were patched, as they are now.
    pub blocks: Vec<(Type, Vec<u8>)>,
    /// For users that would take too long with everything: which part of it.
    pub part: usize,
}

/// Makes what an input describes.
pub fn damaged(input: &[u8]) -> Damaged {
    let (&first, rest) = input.split_first().unwrap_or((&0, &[]));
    let base = base(usize::from(first));
    let mut blocks: BTreeMap<usize, (Vec<u8>, bool)> = BTreeMap::new();
    for patch in rest.chunks_exact(8).take(PATCHES) {
        let at = usize::from(u16::from_le_bytes([patch[0], patch[1]])) % base.units.len();
        let unit = &base.units[at];
        let (bytes, mend) = blocks.entry(at).or_insert_with(|| (base.bytes(unit), true));
        *mend &= patch[4] & 16 == 0;
        apply(base, unit, bytes, patch);
    }
    let mut devices = base.sound.devices().clone();
    let mut shown = Vec::new();
    let mut per_device: BTreeMap<Device, BTreeMap<u64, Vec<u8>>> = BTreeMap::new();
    for (at, (mut bytes, mend)) in blocks {
        let unit = &base.units[at];
        if let (Some(crc), true) = (unit.crc, mend)
            && let Some(right) = checksum::compute(&bytes, crc)
        {
            bytes[crc..crc + 4].copy_from_slice(&right.to_le_bytes());
        }
        shown.push((unit.kind, bytes.clone()));
        per_device.entry(unit.device).or_default().insert(unit.byte, bytes);
    }
    for (device, blocks) in per_device {
        let source = match device {
            Device::Rt => devices.rt.as_mut().expect("units lie on devices"),
            _ => &mut devices.data,
        };
        *source = Arc::new(Patched { beneath: source.clone(), blocks });
    }
    let volume = Volume::open(devices, Choice::default()).ok().map(|volume| volume.limited(STEPS));
    Damaged { volume, blocks: shown, part: usize::from(first) / BASES }
}

impl Base {
    fn bytes(&self, unit: &Unit) -> Vec<u8> {
        let mut bytes = vec![0; unit.length];
        let source = self.sound.devices().get(unit.device).expect("units lie on devices");
        source.read_at(ByteOffset(unit.byte), &mut bytes).expect("a unit");
        bytes
    }

    /// The unit that an operand names.
    fn named(&self, operand: i64) -> &Unit {
        &self.units[operand.rem_euclid(self.units.len() as i64) as usize]
    }
}

fn apply(base: &Base, unit: &Unit, bytes: &mut [u8], patch: &[u8]) {
    let at = usize::from(u16::from_le_bytes([patch[2], patch[3]]));
    let operand = i64::from(i32::from_le_bytes([0, patch[5], patch[6], patch[7]]) >> 8);
    let (bit, width) = match unit.fields.is_empty() || patch[4] & 32 != 0 {
        true => ((at % unit.length) as u64 * 8, 8),
        false => unit.fields[at % unit.fields.len()],
    };
    let here = (bit / 8) as usize;
    let old = bits::bit_range(bytes, bit, width.min(64)).unwrap_or(0);
    let operation = usize::from(patch[4] & 15) % OPERATIONS.len();
    let new = match operation {
        0 => operand as u64,
        1 => old.wrapping_add(operand as u64),
        2 => old ^ (1 << (operand & 63)),
        3 => u64::MAX,
        4 => {
            let count = unit.fields.len().max(1) as i64;
            let other = unit.fields.get(operand.rem_euclid(count) as usize).copied().unwrap_or((bit, width));
            bits::bit_range(bytes, other.0, other.1.min(64)).unwrap_or(0)
        }
        5..=7 => number(base, operand, operation).unwrap_or(0),
        8 => {
            let other = base.bytes(base.named(operand));
            let length = other.len().min(bytes.len());
            bytes[..length].copy_from_slice(&other[..length]);
            return;
        }
        9 => return bytes[here..].fill(operand as u8),
        10 => (operand as u64) << 32,
        _ => {
            let by = operand.unsigned_abs() as usize % 64;
            match operand < 0 {
                true if here >= by => bytes.copy_within(here.., here - by),
                _ => bytes.copy_within(here..unit.length.saturating_sub(by).max(here), (here + by).min(unit.length)),
            }
            return;
        }
    };
    set(bytes, bit, width.min(64), new);
}

/// The number by which others point to a unit.
fn number(base: &Base, operand: i64, operation: usize) -> Option<u64> {
    // Patches of a superblock do not change what numbers mean here.
    let volume = &base.sound;
    let geometry = volume.geometry();
    let first = operand.rem_euclid(base.units.len() as i64) as usize;
    if operation == 7 {
        let unit = base.units[first..].iter().chain(&base.units).find(|unit| unit.kind == Type::Inode)?;
        let (block, within) = geometry.byte_block(ByteOffset(unit.byte))?;
        let slot = u64::from(within) / u64::from(volume.context().inode_size);
        let per_block = geometry.block_size() / u64::from(volume.context().inode_size);
        return block.0.checked_mul(per_block)?.checked_add(slot);
    }
    let (block, _) = geometry.byte_block(ByteOffset(base.units[first].byte))?;
    match operation {
        5 => geometry.split(block).map(|(_, within)| within.get()),
        _ => Some(block.0),
    }
}

/// Sets bits, the most significant first.
fn set(bytes: &mut [u8], bit: u64, width: u32, value: u64) {
    for i in 0..width {
        let at = bit + u64::from(i);
        let Some(byte) = bytes.get_mut((at / 8) as usize) else { return };
        let mask = 0x80 >> (at % 8);
        match value >> (width - 1 - i) & 1 {
            0 => *byte &= !mask,
            _ => *byte |= mask,
        }
    }
}
