//! Does the realtime device belong to this file system? Size, and the realtime superblock. The log is looked at
//! whenever a file system is opened.

use super::{Sink, rules};
use crate::error::Place;
use crate::format::Structure;
use crate::format::checksum::{self, CrcState};
use crate::format::rtsb::{CRC_OFFSET, MAGIC, RtSuperblock};
use crate::units::{ByteOffset, Device};
use crate::volume::Volume;
use crate::walk::Walk;

/// Raises what is wrong with the realtime device that was given.
pub fn check(walk: &Walk<'_>, sink: &mut Sink<'_>) {
    realtime(walk.volume(), sink);
}

fn realtime(volume: &Volume, sink: &mut Sink<'_>) {
    let geometry = volume.geometry();
    let start = |device| Place::new(device, ByteOffset(0), geometry.block_size(), "realtime section");
    let Some(rt) = geometry.realtime.as_ref() else {
        if let Some(device) = volume.devices().rt.as_ref()
            && volume.superblock().rblocks.0 == 0
        {
            sink.raise(
                rules::DEVICE_UNUSED,
                start(Device::Rt),
                format_args!("{} bytes", device.len()),
                "no device: rblocks is 0",
            );
        }
        return;
    };
    if rt.device == Device::Data
        && let Some(device) = volume.devices().rt.as_ref()
    {
        let found = format!("{} bytes", device.len());
        sink.raise(rules::DEVICE_UNUSED, start(Device::Rt), found, "no device: the section lies on the data device");
    }
    let Some(device) = volume.devices().get(rt.device) else { return };
    let gaps = rt.groups.as_ref().filter(|groups| groups.gaps);
    let blocks = match gaps {
        // Groups begin at powers of two: the last one ends behind the gaps of all others.
        Some(groups) => u64::from(groups.count.saturating_sub(1))
            .checked_shl(u32::from(groups.block_log))
            .and_then(|n| n.checked_add(rt.group_blocks(crate::units::RgNumber(groups.count.saturating_sub(1)))?)),
        None => Some(rt.blocks),
    };
    let needed = blocks.and_then(|n| n.checked_mul(geometry.block_size())).and_then(|n| n.checked_add(rt.start_bytes));
    let needed = needed.unwrap_or(u64::MAX);
    if device.len() < needed {
        let found = format!("{} bytes", device.len());
        sink.raise(
            rules::DEVICE_SHORT,
            start(rt.device),
            found,
            format_args!("{needed} bytes for {} blocks", rt.blocks),
        );
    }
    if rt.groups.is_some() {
        if rt.device == Device::Rt && !volume.context().features.has_zoned() {
            superblock(volume, sink);
        }
    } else if rt.device == Device::Rt {
        foreign(volume, sink);
    }
}

/// `xfs_rtsb_verify_all`.
fn superblock(volume: &Volume, sink: &mut Sink<'_>) {
    let Ok(block) = volume.read(Device::Rt, ByteOffset(0), volume.context().block_size, "rtsb") else { return };
    let Some(rtsb) = RtSuperblock::decode(&block.bytes) else { return };
    let (sb, place) = (volume.superblock(), &block.place);
    if rtsb.magicnum != MAGIC {
        sink.raise(rules::RTSB_MAGIC, place.clone(), format_args!("{:#x}", rtsb.magicnum), format_args!("{MAGIC:#x}"));
        return;
    }
    let crc = checksum::verify(&block.bytes, CRC_OFFSET);
    if let CrcState::Bad { computed } = crc {
        sink.raise(rules::RTSB_CRC, place.clone(), rtsb.crc, crate::format::Crc(computed));
    }
    let (uuid, meta_uuid) = (rtsb.uuid != sb.uuid, rtsb.meta_uuid != sb.metadata_uuid());
    if uuid && meta_uuid && crc == CrcState::Correct {
        sink.raise(rules::DEVICE_OTHER, place.field("uuid"), rtsb.uuid, sb.uuid);
        return;
    }
    if uuid {
        sink.raise(rules::RTSB_UUID, place.clone(), rtsb.uuid, sb.uuid);
    }
    if meta_uuid {
        sink.raise(rules::RTSB_META_UUID, place.clone(), rtsb.meta_uuid, sb.metadata_uuid());
    }
    if rtsb.fname != sb.fname {
        let text = |bytes: &[u8]| {
            format!("{:?}", String::from_utf8_lossy(bytes.split(|&b| b == 0).next().unwrap_or_default()))
        };
        sink.raise(rules::RTSB_LABEL, place.clone(), text(&rtsb.fname), text(&sb.fname));
    }
    let rest = block.bytes.get(RtSuperblock::SIZE..).unwrap_or_default();
    if rtsb.pad != 0 || rest.iter().any(|&b| b != 0) {
        sink.raise(rules::RTSB_PADDING, place.clone(), "bytes that are not zero", "zeros");
    }
}

/// Something that the first bytes of a device say it is, though they are file data here and may say anything.
fn foreign(volume: &Volume, sink: &mut Sink<'_>) {
    let Ok(block) = volume.read(Device::Rt, ByteOffset(0), 4096, "first bytes of the realtime device") else { return };
    let at = |offset: usize, magic: &[u8]| block.bytes.get(offset..).is_some_and(|rest| rest.starts_with(magic));
    let known: [(usize, &[u8], &str); 5] = [
        (0, b"XFSB", "an XFS superblock"),
        (0, b"Frog", "a realtime superblock of a file system with realtime groups"),
        (512, b"EFI PART", "a GPT partition table"),
        (1080, &[0x53, 0xef], "an ext2/3/4 superblock"),
        (512, b"LABELONE", "an LVM physical volume"),
    ];
    if let Some((_, _, name)) = known.into_iter().find(|&(offset, magic, _)| at(offset, magic)) {
        sink.raise(rules::DEVICE_FOREIGN, block.place, name, "file data");
    }
}
