//! Any bytes as a device: finding a superblock, its copies and what else it might be; then the rules about the
//! superblock, the report, and the headers of every AG.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use xfsinspect::check::superblock::{Subject, check};
use xfsinspect::error::Place;
use xfsinspect::format::checksum::CrcState;
use xfsinspect::format::{Type, layout};
use xfsinspect::report::info::{DeviceNames, report};
use xfsinspect::source::{MemorySource, container};
use xfsinspect::units::{AgNumber, ByteOffset, Device, FsBlock, Ino, RtBlock};
use xfsinspect::volume::{AgHeader, Choice, Devices, Volume};

fuzz_target!(|data: &[u8]| {
    let source = Arc::new(MemorySource::new(data));
    let _ = container::identify(&*source);
    let Ok(volume) = Volume::open(Devices::data_only(source), Choice::default()) else { return };
    let sb = volume.superblock().clone();
    let _ = report(&sb, volume.zoned(), DeviceNames::default(), true);
    let features = sb.features();
    let (dblocks, rootino) = (sb.dblocks.0, sb.rootino);
    let subject = Subject { sb, zoned: volume.zoned(), features, crc: CrcState::Unchecked, primary: true };
    let _ = check(&subject, &Place::new(Device::Data, ByteOffset(0), 512, "sb 0"));
    let _ = volume.shortfall();
    for ag in 0..volume.geometry().ag_count.min(8) {
        for header in [AgHeader::Superblock, AgHeader::Agf, AgHeader::Agi, AgHeader::Agfl] {
            if let Ok(block) = volume.ag_header(AgNumber(ag), header) {
                let _ = layout(Type::by_name(header.name()).expect("a type"), volume.context(), &block.bytes);
            }
        }
    }
    let _ = volume.inode(rootino);
    for n in [0, 1, dblocks, u64::MAX] {
        let _ = (volume.inode(Ino(n)), volume.blocks(FsBlock(n), 1, "fuzz"), volume.rt_blocks(RtBlock(n), 1, "fuzz"));
    }
});
