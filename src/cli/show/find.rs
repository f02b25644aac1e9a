//! From the words of `show` to bytes and their type.

use super::super::args::{ShowArgs, number};
use super::{Answer, file, guess};
use crate::error::{Error, Result};
use crate::format::agf::Agf;
use crate::format::agi::Agi;
use crate::format::dinode::Fork;
use crate::format::{STRUCTURES, Structure, Type, bits, symlink};
use crate::report::text::escaped;
use crate::units::{AgBlock, AgNumber, Daddr, Device, FsBlock, Ino, RtBlock};
use crate::volume::{AgHeader, Block, Volume};

/// Names that may be asked for, for error messages.
const KNOWN: &str = "sb, agf, agi, agfl, bnobt, cntbt, inobt, finobt, rmapbt, refcntbt, inode, rtsb, fsblock, agblock, \
                     daddr, rtblock, dblock, ablock, or a path: /a/b";

/// Where bytes are, as it was asked.
#[derive(Clone, Copy)]
enum Address {
    Block(FsBlock),
    Daddr(Daddr),
    Rt(RtBlock),
}

/// Finds what was asked for.
///
/// # Errors
/// What was asked for does not exist, or cannot be read; [`Error::Corrupt`] where a header names a root that cannot be.
pub(super) fn find<'a>(volume: &Volume, args: &'a ShowArgs) -> Result<Answer<'a>> {
    let (what, rest) = args.what.split_first().ok_or_else(|| Error::request("show what?"))?;
    let given = as_number(rest.first());
    let fields = if given.is_some() { rest.get(1..).unwrap_or_default() } else { rest };
    let needed = || given.ok_or_else(|| Error::request(format!("show {what} needs a number: show TARGET {what} N")));
    let ag = || {
        let ag = given.unwrap_or(0);
        u32::try_from(ag).map(AgNumber).map_err(|_| Error::request(format!("{what} {ag}: no such AG")))
    };
    let wanted = wanted_type(args)?;
    let as_wanted = |kind, block| Ok(Answer { kind: wanted.unwrap_or(kind), block, fields });
    match what.as_str() {
        "sb" => as_wanted(Type::Sb, volume.ag_header(ag()?, AgHeader::Superblock)?),
        "agf" => as_wanted(Type::Agf, volume.ag_header(ag()?, AgHeader::Agf)?),
        "agi" => as_wanted(Type::Agi, volume.ag_header(ag()?, AgHeader::Agi)?),
        "agfl" => as_wanted(Type::Agfl, volume.ag_header(ag()?, AgHeader::Agfl)?),
        "inode" => as_wanted(Type::Inode, volume.inode(Ino(needed()?))?),
        "rtsb" => as_wanted(Type::Rtsb, realtime_superblock(volume)?),
        "fsblock" => at(volume, Address::Block(FsBlock(needed()?)), wanted, fields),
        "daddr" => at(volume, Address::Daddr(Daddr(needed()?)), wanted, fields),
        "rtblock" => at(volume, Address::Rt(RtBlock(needed()?)), wanted, fields),
        "dblock" => file::block(volume, args, Fork::Data, wanted),
        "ablock" => file::block(volume, args, Fork::Attr, wanted),
        path if path.starts_with('/') => file::path(volume, path, wanted, rest),
        "agblock" => {
            let (block, fields) = (ag_block(volume, rest.first())?, rest.get(1..).unwrap_or_default());
            at(volume, Address::Block(block), wanted, fields)
        }
        name => match Type::by_name(name).and_then(|kind| Some((kind, root_of(kind)?))) {
            Some((kind, root)) => {
                let ag = ag()?;
                let block = root(volume, ag)?;
                let read = volume.blocks(block, 1, format!("root of {name} {ag}"))?;
                as_wanted(kind, read)
            }
            None => {
                let what = escaped(what.as_bytes());
                Err(Error::request(format!("show {what}: not known; there are {KNOWN}")))
            }
        },
    }
}

/// The number that a word is, if it is one.
fn as_number(word: Option<&String>) -> Option<u64> {
    word.filter(|w| w.starts_with(|c: char| c.is_ascii_digit())).and_then(|w| number(w).ok())
}

/// The type of `--as`.
fn wanted_type(args: &ShowArgs) -> Result<Option<Type>> {
    let Some(name) = &args.kind else { return Ok(None) };
    Type::by_name(name).map(Some).ok_or_else(|| {
        let names: Vec<&str> = STRUCTURES.iter().map(|row| row.name).collect();
        let name = escaped(name.as_bytes());
        Error::request(format!("--as {name}: no such type; there are {}", names.join(", ")))
    })
}

/// `AG:BLOCK`.
fn ag_block(volume: &Volume, word: Option<&String>) -> Result<FsBlock> {
    let usage = || Error::request("show agblock needs an AG and a block: show TARGET agblock AG:BLOCK");
    let word = word.ok_or_else(usage)?;
    let (ag, block) = word.split_once(':').ok_or_else(usage)?;
    let part = |text: &str| number(text).ok().and_then(|n| u32::try_from(n).ok()).ok_or_else(usage);
    let (ag, block) = (AgNumber(part(ag)?), AgBlock(part(block)?));
    volume.geometry().join(ag, block).ok_or_else(|| no_such_block(volume, ag, block))
}

fn no_such_block(volume: &Volume, ag: AgNumber, block: AgBlock) -> Error {
    let (count, length) = (volume.geometry().ag_count, volume.geometry().ag_length(ag));
    Error::request(match length {
        None => format!("agblock {ag}:{block}: no such AG, there are {count} (0 to {})", count.saturating_sub(1)),
        Some(length) => format!("agblock {ag}:{block}: AG {ag} has {length} blocks"),
    })
}

impl Address {
    /// A structure here, for messages.
    fn of(self, what: &str) -> String {
        match self {
            Address::Block(block) => format!("{what} in block {block}"),
            Address::Rt(block) => format!("{what} in realtime block {block}"),
            Address::Daddr(daddr) => format!("{what} at daddr {daddr}"),
        }
    }
}

/// Reads `bytes` bytes, at least, at an address: whole blocks, or whole sectors of 512 bytes.
fn read(volume: &Volume, address: Address, bytes: u32, what: &str) -> Result<Block> {
    let (blocks, what) = (bytes.div_ceil(volume.context().block_size), address.of(what));
    match address {
        Address::Block(block) => volume.blocks(block, blocks, what),
        Address::Rt(block) => volume.rt_blocks(block, blocks, what),
        Address::Daddr(daddr) => {
            let byte = volume.geometry().daddr_byte(daddr);
            let byte = byte.ok_or_else(|| Error::request(format!("daddr {daddr}: no such address")))?;
            volume.read(Device::Data, byte, bytes.max(512), what)
        }
    }
}

/// What lies at an address: read once to see what it is, and once more where that takes more bytes.
fn at<'a>(volume: &Volume, address: Address, wanted: Option<Type>, fields: &'a [String]) -> Result<Answer<'a>> {
    let context = volume.context();
    let first = match wanted {
        Some(kind) => kind.size(context),
        // A header of an AG may be the last thing on a cut device.
        None if matches!(address, Address::Daddr(_)) => context.sector_size,
        None => context.block_size,
    };
    let mut block = read(volume, address, first, wanted.map_or("structure", Type::name))?;
    let kind = wanted.unwrap_or_else(|| guess::kind(volume, &block));
    let size = whole_size(volume, kind, &block.bytes);
    if usize::try_from(size).is_ok_and(|size| size > block.bytes.len()) {
        block = read(volume, address, size, kind.name())?;
    }
    block.bytes.truncate(usize::try_from(size).unwrap_or(usize::MAX));
    block.place.structure = address.of(kind.name());
    block.place.length = u64::from(size).min(block.place.length);
    Ok(Answer { kind, block, fields })
}

/// Bytes of a structure. A long target of a symbolic link takes several blocks side by side.
fn whole_size(volume: &Volume, kind: Type, bytes: &[u8]) -> u32 {
    let context = volume.context();
    let size = kind.size(context);
    if kind != Type::Symlink || bits::be32(bytes, 0) != Some(symlink::MAGIC) {
        return size;
    }
    let said = bits::be32(bytes, 8).filter(|&said| said <= symlink::MAX_LENGTH).unwrap_or(0);
    size.max(said.saturating_add(56).next_multiple_of(context.block_size.max(1)))
}

/// First block of a realtime section with groups.
fn realtime_superblock(volume: &Volume) -> Result<Block> {
    let features = &volume.context().features;
    if !features.has_metadir() || volume.geometry().realtime.is_none() {
        return Err(Error::request("rtsb: only realtime sections with groups (feature metadir) have a superblock"));
    }
    if features.has_zoned() {
        return Err(Error::request("rtsb: a zoned realtime section has no superblock"));
    }
    volume.rt_blocks(RtBlock(0), 1, "rtsb")
}

type Root = fn(&Volume, AgNumber) -> Result<FsBlock>;

/// How to find the root of an AG's btree; `None` for types that are none.
fn root_of(kind: Type) -> Option<Root> {
    Some(match kind {
        Type::Bnobt => |volume, ag| from_agf(volume, ag, "bnobt", |agf| agf.bno_root),
        Type::Cntbt => |volume, ag| from_agf(volume, ag, "cntbt", |agf| agf.cnt_root),
        Type::Rmapbt => |volume, ag| {
            needs(volume.context().features.has_rmapbt(), "rmapbt", "rmapbt")?;
            from_agf(volume, ag, "rmapbt", |agf| agf.rmap_root)
        },
        Type::Refcntbt => |volume, ag| {
            needs(volume.context().features.has_reflink(), "refcntbt", "reflink")?;
            from_agf(volume, ag, "refcntbt", |agf| agf.refcount_root)
        },
        Type::Inobt => |volume, ag| from_agi(volume, ag, "inobt", |agi| agi.root),
        Type::Finobt => |volume, ag| {
            needs(volume.context().features.has_finobt(), "finobt", "finobt")?;
            from_agi(volume, ag, "finobt", |agi| agi.free_root)
        },
        _ => return None,
    })
}

fn needs(feature: bool, name: &str, word: &str) -> Result<()> {
    let text = format!("{name}: the file system has no such btree (feature {word} is off)");
    if feature { Ok(()) } else { Err(Error::request(text)) }
}

fn from_agf(volume: &Volume, ag: AgNumber, name: &'static str, field: fn(&Agf) -> AgBlock) -> Result<FsBlock> {
    let header = volume.ag_header(ag, AgHeader::Agf)?;
    root(volume, ag, name, &header, Agf::decode(&header.bytes).map(|agf| field(&agf)))
}

fn from_agi(volume: &Volume, ag: AgNumber, name: &'static str, field: fn(&Agi) -> AgBlock) -> Result<FsBlock> {
    let header = volume.ag_header(ag, AgHeader::Agi)?;
    root(volume, ag, name, &header, Agi::decode(&header.bytes).map(|agi| field(&agi)))
}

fn root(volume: &Volume, ag: AgNumber, name: &str, header: &Block, block: Option<AgBlock>) -> Result<FsBlock> {
    let block = block.unwrap_or(AgBlock::NULL);
    volume.geometry().join(ag, block).ok_or_else(|| Error::Corrupt {
        place: Box::new(header.place.clone()),
        what: format!("root of {name}"),
        found: format!("block {block}"),
        expected: format!("less than {}, the blocks of AG {ag}", volume.geometry().ag_length(ag).unwrap_or(0)),
    })
}
