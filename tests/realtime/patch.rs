//! Images with bytes replaced in memory, their checksums mended, and what `rt` finds in them.

use crate::common;
use crate::common::overlay::Overlay;
use std::collections::{BTreeMap, BTreeSet};
use xfsinspect::check::Class;
use xfsinspect::check::rt::{Depth, Report, Sink, Unobserved, check};
use xfsinspect::source::Source;
use xfsinspect::units::{ByteOffset, Device, Ino};
use xfsinspect::volume::{Choice, Devices, Volume};
use xfsinspect::walk::Walk;

/// An image that is damaged again and again.
pub struct Image {
    devices: Devices,
    pub volume: Volume,
}

impl Image {
    pub fn new(name: &str) -> Self {
        Self { devices: common::devices(name), volume: common::volume(name) }
    }

    /// The bytes of a structure of the data device.
    pub fn read(&self, byte: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.devices.data.read_at(ByteOffset(byte), &mut bytes).unwrap();
        bytes
    }

    /// The bytes of an inode and where they lie.
    pub fn inode(&self, ino: u64) -> (u64, Vec<u8>) {
        let byte = self.volume.geometry().inode_byte(Ino(ino)).unwrap().0;
        (byte, self.read(byte, self.volume.context().inode_size as usize))
    }

    /// The image with these structures of a device instead of its own.
    pub fn with(&self, device: Device, patches: BTreeMap<u64, Vec<u8>>) -> Volume {
        let mut devices = self.devices.clone();
        let beneath = devices.get(device).unwrap().clone();
        let overlay = Overlay::new(beneath, patches);
        match device {
            Device::Data => devices.data = overlay,
            Device::Rt => devices.rt = Some(overlay),
            Device::Log => devices.log = Some(overlay),
        }
        Volume::open(devices, Choice::default()).unwrap()
    }

    /// The image with one structure changed and its checksum at `crc` mended (V5).
    pub fn changed(&self, byte: u64, length: usize, crc: usize, change: impl FnOnce(&mut [u8])) -> Volume {
        let mut bytes = self.read(byte, length);
        change(&mut bytes);
        self.mend(&mut bytes, crc);
        self.with(Device::Data, BTreeMap::from([(byte, bytes)]))
    }

    pub fn mend(&self, bytes: &mut [u8], crc: usize) {
        if self.volume.context().has_crc() && crc != 0 {
            bytes[crc..crc + 4].fill(0);
            let sum = crc32c::crc32c(bytes);
            bytes[crc..crc + 4].copy_from_slice(&sum.to_le_bytes());
        }
    }

    /// The image with an inode changed.
    pub fn inode_changed(&self, ino: u64, change: impl FnOnce(&mut [u8])) -> Volume {
        let byte = self.volume.geometry().inode_byte(Ino(ino)).unwrap().0;
        self.changed(byte, self.volume.context().inode_size as usize, 100, change)
    }

    /// The image with its superblock changed.
    pub fn superblock_changed(&self, change: impl FnOnce(&mut [u8])) -> Volume {
        self.changed(0, self.volume.context().sector_size as usize, 224, change)
    }
}

/// Ids of the rules that are broken, and the report.
pub fn look(volume: &Volume) -> (BTreeSet<&'static str>, BTreeSet<&'static str>, Option<Report>) {
    let walk = Walk::new(volume);
    let (mut damage, mut other) = (BTreeSet::new(), BTreeSet::new());
    let mut keep = |finding: xfsinspect::check::Finding| {
        let damaged = matches!(finding.rule.class, Class::Corrupt | Class::XCorrupt);
        if damaged {
            damage.insert(finding.rule.id)
        } else {
            other.insert(finding.rule.id)
        };
    };
    let report = check(&walk, Depth::Everything, &mut Unobserved, &mut Sink::new(&mut keep));
    (damage, other, report)
}

/// Ids of damage, in order.
pub fn damage(volume: &Volume) -> Vec<&'static str> {
    look(volume).0.into_iter().collect()
}
