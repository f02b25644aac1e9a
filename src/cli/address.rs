//! Addresses as they are typed: bytes, sectors, blocks of every kind, inodes.

use super::args::number;
use crate::error::{Error, Result};
use crate::geometry::Geometry;
use crate::report::text::escaped;
use crate::units::{AgBlock, AgNumber, ByteOffset, Daddr, Device, FsBlock, Ino, RgBlock, RgNumber, RtBlock};

/// The forms, for the help of commands.
pub const FORMS: &str = "\
ADDR is one of
  N                  byte of the data device; 8s is a sector of 512 bytes, also k, m, g, t
  rt:N, log:N        the same of the realtime section or an external log
  daddr:N            512-byte unit of the data device, as kernel messages have it; rt:daddr:N, log:daddr:N
  AG:BLOCK           block of an AG, such as 3:1234
  fsb:N              block of the data device with the AG in its high bits, as extents have it
  rtb:N              block of the realtime section, as extents of realtime files have it
  rtx:N              realtime extent
  rg:GROUP:BLOCK     block of a realtime group
  ino:N              inode
Numbers are decimal or 0x hexadecimal. Bytes of an internal (zoned) realtime section count from the start of the data
device.";

fn value(text: &str) -> Result<u64> {
    number(text).map_err(Error::Request)
}

fn narrow(text: &str) -> Result<u32> {
    let value = value(text)?;
    u32::try_from(value).map_err(|_| Error::request(format!("{value}: larger than 32 bits")))
}

/// A byte, or `daddr:N`.
fn byte(geometry: &Geometry, text: &str) -> Result<ByteOffset> {
    match text.strip_prefix("daddr:") {
        Some(daddr) => {
            let daddr = Daddr(value(daddr)?);
            geometry.daddr_byte(daddr).ok_or_else(|| Error::request(format!("{daddr}: too large for an address")))
        }
        None => value(text).map(ByteOffset),
    }
}

/// Device and byte of an address. [`Device::Rt`] stands for an internal realtime section, too.
///
/// # Errors
/// [`Error::Request`] for what is no address, and for one that does not exist on this file system. A byte is not
/// checked against the end of its device.
pub fn parse(geometry: &Geometry, text: &str) -> Result<(Device, ByteOffset)> {
    let at = |byte: Option<ByteOffset>, device: Device| {
        let shown = escaped(text.as_bytes());
        byte.map(|byte| (device, byte)).ok_or_else(|| Error::request(format!("{shown}: there is no such place")))
    };
    let realtime = |block: Option<RtBlock>| {
        at(block.and_then(|block| geometry.rt_block_byte(block)).map(|(_, byte)| byte), Device::Rt)
    };
    let Some((kind, rest)) = text.split_once(':') else {
        return Ok((Device::Data, value(text)?)).map(|(device, byte)| (device, ByteOffset(byte)));
    };
    match kind {
        "daddr" => Ok((Device::Data, byte(geometry, text)?)),
        "data" => Ok((Device::Data, byte(geometry, rest)?)),
        "rt" => Ok((Device::Rt, byte(geometry, rest)?)),
        "log" => Ok((Device::Log, byte(geometry, rest)?)),
        "fsb" | "fsblock" => at(geometry.block_byte(FsBlock(value(rest)?)), Device::Data),
        "ino" | "inode" => at(geometry.inode_byte(Ino(value(rest)?)), Device::Data),
        "rtb" | "rtblock" => realtime(Some(RtBlock(value(rest)?))),
        "rtx" => realtime(extent(geometry, value(rest)?)),
        "rg" => {
            let (group, block) = rest.split_once(':').ok_or_else(|| Error::request("give rg:GROUP:BLOCK"))?;
            let (group, block) = (RgNumber(narrow(group)?), RgBlock(narrow(block)?));
            realtime(geometry.realtime.as_ref().and_then(|rt| rt.join(group, block)))
        }
        ag if ag.starts_with(|c: char| c.is_ascii_digit()) => {
            let (ag, block) = (AgNumber(narrow(ag)?), AgBlock(narrow(rest)?));
            at(geometry.ag_block_byte(ag, block), Device::Data)
        }
        other => Err(Error::request(format!(
            "{}: no kind of address; give N, Ns, daddr:N, AG:BLOCK, fsb:N, rtb:N, rtx:N, rg:GROUP:BLOCK, ino:N, rt:N or log:N",
            escaped(other.as_bytes())
        ))),
    }
}

/// First block of a realtime extent, counted over all groups.
fn extent(geometry: &Geometry, number: u64) -> Option<RtBlock> {
    let rt = geometry.realtime.as_ref()?;
    let size = u64::from(rt.extent_blocks);
    let Some(groups) = &rt.groups else { return number.checked_mul(size).map(RtBlock) };
    let group = u32::try_from(number.checked_div(u64::from(groups.extents))?).ok()?;
    let within = number.checked_rem(u64::from(groups.extents))?.checked_mul(size)?;
    rt.join(RgNumber(group), RgBlock(u32::try_from(within).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Structure;
    use crate::format::superblock::Superblock;
    use crate::units::{Blocks, RtExtent};

    /// `agcount` AGs of `agblocks` blocks of 4 KiB.
    fn geometry(agblocks: u32, agblklog: u8, agcount: u32) -> Geometry {
        let mut sb = Superblock::decode(&[0; 288]).expect("288 bytes");
        (sb.versionnum, sb.blocksize, sb.blocklog, sb.sectsize, sb.sectlog) = (0xb4b5, 4096, 12, 512, 9);
        (sb.inodesize, sb.inodelog, sb.inopblog, sb.agblocks, sb.agblklog) = (512, 9, 3, agblocks, agblklog);
        (sb.agcount, sb.dblocks) = (AgNumber(agcount), Blocks(u64::from(agblocks) * u64::from(agcount)));
        (sb.rblocks, sb.rextents, sb.rextsize) = (Blocks(28672), RtExtent(7168), 4);
        sb.features_incompat = 0x1eb;
        (sb.rgcount, sb.rgextents, sb.rgblklog) = (2, 3584, 14);
        Geometry::new(&sb, (0, 0)).expect("sane")
    }

    #[test]
    fn every_form() {
        let g = geometry(1000, 10, 4);
        let all = [
            ("4096", Device::Data, 4096),
            ("0x10", Device::Data, 16),
            ("8s", Device::Data, 4096),
            ("daddr:0x80001", Device::Data, 268_435_968),
            ("3:999", Device::Data, 3999 * 4096),
            ("fsb:3072", Device::Data, 3000 * 4096),
            ("ino:24577", Device::Data, 3000 * 4096 + 512),
            ("rt:8s", Device::Rt, 4096),
            ("log:daddr:1", Device::Log, 512),
            ("rtb:16384", Device::Rt, 14336 * 4096),
            ("rtx:3584", Device::Rt, 14336 * 4096),
            ("rtx:3583", Device::Rt, 14332 * 4096),
            ("rg:1:2", Device::Rt, 14338 * 4096),
        ];
        for (text, device, byte) in all {
            assert_eq!(parse(&g, text).expect(text), (device, ByteOffset(byte)), "{text}");
        }
        for bad in ["", "x", "x:1", "4:0", "3:1000", "fsb:1000", "rg:2:0", "rg:1", "rtb:14336", "rtx:7168", "3:", "-1"]
        {
            assert!(parse(&g, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_sector_of_a_kernel_message() {
        // "Metadata CRC error at xfs_agf block 0x187ffffe79", AGs of 268435455 blocks: second sector of AG 49.
        let g = geometry(268_435_455, 28, 60);
        let (_, byte) = parse(&g, "daddr:0x187ffffe79").expect("an address");
        assert_eq!(g.ag_header(AgNumber(49), 1), Some(byte));
    }
}
