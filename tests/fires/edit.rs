//! Edits of images by the names of fields; see main.rs.

use super::{Overlay, common};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use xfsinspect::format::{Body, Format, Node, Type, checksum, layout};
use xfsinspect::report::select::select;
use xfsinspect::source::{Cached, FileSource, Source};
use xfsinspect::units::{AgNumber, ByteOffset, Ino};
use xfsinspect::volume::{Choice, Devices, Volume};

/// What is written where: on the realtime device or the data device, from which byte on.
pub type Patches = BTreeMap<(bool, u64), Vec<u8>>;

/// An image and what its structures are found by.
pub struct Image {
    devices: Devices,
    volume: Volume,
}

/// The packed devices of an image of `testimages`, by what they are: `NAME`, `NAME without log`, `NAME with log of OTHER`.
pub fn packed(name: &str) -> Vec<(&'static str, PathBuf)> {
    let (name, log) = match name.split_once(" with log of ") {
        Some((name, other)) => (name, format!("{other}.log")),
        None => name.strip_suffix(" without log").map_or((name, format!("{name}.log")), |name| (name, "none".into())),
    };
    let file = |name: &str| common::images().join(format!("{name}.img.zst"));
    let all = [("data", file(name)), ("rt", file(&format!("{name}.rt"))), ("log", file(&log))];
    all.into_iter().filter(|(_, path)| path.exists()).collect()
}

pub fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    }
    .unwrap_or_else(|e| panic!("{text}: {e}"))
}

impl Image {
    pub fn open(name: &str) -> Self {
        let flat = name.replace(['/', ' '], "-");
        let mut devices: BTreeMap<&str, Arc<dyn Source>> = BTreeMap::new();
        for (device, path) in packed(name) {
            let path = common::unpacked(&path, &format!("{flat}.{device}"));
            devices.insert(device, Arc::new(Cached::new(FileSource::open(&path).unwrap())));
        }
        let data = devices.remove("data").unwrap_or_else(|| panic!("no image {name}"));
        let devices = Devices { data, log: devices.remove("log"), rt: devices.remove("rt") };
        let volume = Volume::open(devices.clone(), Choice::default()).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        Self { devices, volume }
    }

    pub fn devices(&self) -> Devices {
        self.devices.clone()
    }

    /// The image with these bytes in the place of its own.
    pub fn with(&self, patches: Patches) -> Devices {
        let mut devices = self.devices.clone();
        let of = |rt: bool| {
            patches.iter().filter(move |((on, _), _)| *on == rt).map(|((_, at), bytes)| (*at, bytes.clone()))
        };
        devices.data = Overlay::new(devices.data, of(false));
        devices.rt = devices.rt.map(|inner| Overlay::new(inner, of(true)) as Arc<dyn Source>);
        devices
    }

    /// Kind of an object, whether it lies on the realtime device, and where.
    fn place(&self, object: &str) -> (Type, bool, u64) {
        let (kind, at) = object.split_once(' ').unwrap_or_else(|| panic!("{object}: which one?"));
        let (rt, name) = kind.strip_prefix("rt:").map_or((false, kind), |name| (true, name));
        let kind = Type::by_name(name).unwrap_or_else(|| panic!("{object}: no such structure"));
        let geometry = self.volume.geometry();
        let byte = match (name, at.strip_prefix('@')) {
            (_, Some(byte)) => number(byte),
            ("inode", None) => geometry.inode_byte(Ino(number(at))).unwrap().0,
            _ => {
                let sector = ["sb", "agf", "agi", "agfl"].iter().position(|header| *header == name).expect(object);
                let start = geometry.ag_start(AgNumber(number(at) as u32)).unwrap().0;
                start + sector as u64 * u64::from(self.volume.superblock().sectsize)
            }
        };
        (kind, rt, byte)
    }

    /// What edits of this image write.
    pub fn edit(&self, edits: &str) -> Patches {
        let context = self.volume.context();
        let mut patches = Patches::new();
        for edit in edits.split("; ") {
            let (object, words) = edit.split_once(": ").unwrap_or_else(|| panic!("{edit}"));
            let (kind, rt, byte) = self.place(object);
            let device = if rt { self.devices.rt.as_ref().unwrap() } else { &self.devices.data };
            let bytes = patches.entry((rt, byte)).or_insert_with(|| {
                let mut bytes = vec![0; kind.size(context) as usize];
                device.read_at(ByteOffset(byte), &mut bytes).unwrap();
                bytes
            });
            let crc = crc(&layout(kind, context, bytes)).filter(|_| context.has_crc());
            let mut mend = true;
            for word in words.split(' ') {
                match word.split_once('=') {
                    None if word == "nocrc" => mend = false,
                    None => panic!("{edit}: {word}"),
                    Some((place, value)) => match place.strip_prefix('+') {
                        Some(at) => {
                            let (at, value) = (number(at) as usize, hex(value));
                            bytes[at..at + value.len()].copy_from_slice(&value);
                        }
                        None => {
                            let node = select(&layout(kind, context, bytes), place, context, bytes)
                                .unwrap_or_else(|e| panic!("{edit}: {e}"));
                            let (bit, bits) = span(&node).unwrap_or_else(|| panic!("{edit}: {place} is not one field"));
                            put(bytes, bit, bits, number(value));
                        }
                    },
                }
            }
            if let Some(crc) = crc.filter(|_| mend) {
                let sum = checksum::compute(bytes, crc).unwrap();
                bytes[crc..crc + 4].copy_from_slice(&sum.to_le_bytes());
            }
        }
        patches
    }
}

/// Byte of the checksum.
fn crc(nodes: &[Node]) -> Option<usize> {
    nodes.iter().find_map(|node| match &node.body {
        Body::Value { format: Format::Crc, .. } => Some(node.bit as usize / 8),
        Body::Group(parts) => crc(parts),
        _ => None,
    })
}

/// First bit and width of the one field that a path was pruned to.
fn span(node: &Node) -> Option<(u64, u32)> {
    match &node.body {
        Body::Value { bits, count: 1, .. } => Some((node.bit, *bits)),
        Body::Records { fields, count: 1, .. } if fields.len() == 1 => {
            Some((node.bit + u64::from(fields[0].bit), fields[0].bits))
        }
        Body::Group(parts) if parts.len() == 1 => span(&parts[0]),
        Body::List { items, .. } if items.len() == 1 && items[0].nodes.len() == 1 => span(&items[0].nodes[0]),
        _ => None,
    }
}

fn put(bytes: &mut [u8], first: u64, bits: u32, value: u64) {
    for i in 0..u64::from(bits) {
        let (at, from) = (first + i, u64::from(bits) - 1 - i);
        let mask = 0x80u8 >> (at % 8);
        let byte = &mut bytes[(at / 8) as usize];
        *byte = if from < 64 && value >> from & 1 != 0 { *byte | mask } else { *byte & !mask };
    }
}
