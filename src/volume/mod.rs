//! A file system on its devices: the only place that turns an address into a read.
//!
//! [`Volume::open`] finds a usable superblock (primary, copy, or inferred from AG headers) and keeps what it found
//! out about it in [`Origin`]; nothing here judges the values.

mod copies;
mod open;
mod survey;

pub use copies::{Copy, Fit, find_copies, fit, names_root};
pub use open::{Choice, Inferred, Lost, OpenError, Origin, Scan};
pub use survey::{Gap, Stopped, Survey, is_stopped};

use crate::error::{Error, Place, Result};
use crate::format::Context;
use crate::format::superblock::Superblock;
use crate::geometry::Geometry;
use crate::source::Source;
use crate::units::{AgNumber, ByteOffset, Device, FsBlock, Ino, RtBlock};
use std::sync::Arc;

/// The devices of a file system, as far as they were given.
#[derive(Clone)]
pub struct Devices {
    /// Data section.
    pub data: Arc<dyn Source>,
    /// External log.
    pub log: Option<Arc<dyn Source>>,
    /// Realtime section.
    pub rt: Option<Arc<dyn Source>>,
}

impl Devices {
    /// Just a data device.
    pub fn data_only(data: Arc<dyn Source>) -> Self {
        Self { data, log: None, rt: None }
    }

    /// The source of a device, where it was given.
    pub fn get(&self, device: Device) -> Option<&Arc<dyn Source>> {
        match device {
            Device::Data => Some(&self.data),
            Device::Log => self.log.as_ref(),
            Device::Rt => self.rt.as_ref(),
        }
    }
}

impl std::fmt::Debug for Devices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let len = |source: &Option<Arc<dyn Source>>| source.as_ref().map(|s| s.len());
        write!(f, "Devices {{ data: {}, log: {:?}, rt: {:?} }}", self.data.len(), len(&self.log), len(&self.rt))
    }
}

/// Bytes read from a known place.
#[derive(Clone, Debug)]
pub struct Block {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Where they come from.
    pub place: Place,
}

/// How much of the data section the device does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// Bytes that the superblock promises.
    pub needed: u64,
    /// Bytes that the device has.
    pub present: u64,
    /// First AG that is not wholly there.
    pub first_cut: AgNumber,
    /// Bytes of that AG that are there.
    pub first_cut_present: u64,
}

/// The header sectors of an AG, in disk order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgHeader {
    /// Superblock or copy.
    Superblock,
    /// Free space header.
    Agf,
    /// Inode header.
    Agi,
    /// Free list.
    Agfl,
}

impl AgHeader {
    pub(crate) fn sector(self) -> u32 {
        match self {
            Self::Superblock => 0,
            Self::Agf => 1,
            Self::Agi => 2,
            Self::Agfl => 3,
        }
    }
    /// xfs_db's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Superblock => "sb",
            Self::Agf => "agf",
            Self::Agi => "agi",
            Self::Agfl => "agfl",
        }
    }
}

/// A file system, open for reading.
#[derive(Clone, Debug)]
pub struct Volume {
    devices: Devices,
    geometry: Geometry,
    superblock: Superblock,
    zoned: (u64, u64),
    origin: Origin,
    most_steps: Option<u64>,
}

impl Volume {
    /// The same, but each walk over it ends after `steps` blocks at the latest ([`crate::walk::Walk::new`]): for fuzzing,
    /// and for services that must answer in time.
    #[must_use]
    pub fn limited(self, steps: u64) -> Self {
        Self { most_steps: Some(steps), ..self }
    }

    /// Blocks that a walk over it may look at, where it was limited.
    pub fn most_steps(&self) -> Option<u64> {
        self.most_steps
    }

    /// The trusted numbers.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Sizes and features on which layouts depend.
    pub fn context(&self) -> &Context {
        &self.geometry.context
    }

    /// The superblock in use. For walks take [`Volume::geometry`]: its numbers were checked.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// rtstart and rtreserved of a zoned file system, else zeros.
    pub fn zoned(&self) -> (u64, u64) {
        self.zoned
    }

    /// The same devices, read through a superblock copy that was found in an AG. `None` where arithmetic with it is
    /// impossible.
    pub fn through_copy(&self, (mut superblock, zoned, ag): (Superblock, (u64, u64), AgNumber)) -> Option<Self> {
        open::complete(&mut superblock, &*self.devices.data);
        let geometry = Geometry::new(&superblock, zoned).ok()?;
        let byte = geometry.ag_start(ag)?;
        let origin = Origin::Chosen { ag, byte };
        let (devices, most_steps) = (self.devices.clone(), self.most_steps);
        Some(Self { devices, geometry, superblock, zoned, origin, most_steps })
    }

    /// Where the superblock comes from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The devices.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// What the data device lacks, if it is shorter than the superblock says.
    pub fn shortfall(&self) -> Option<Shortfall> {
        let needed = self.geometry.data_bytes().unwrap_or(u64::MAX);
        let present = self.devices.data.len();
        if present >= needed {
            return None;
        }
        let ag_bytes = u64::from(self.geometry.ag_blocks).checked_mul(self.geometry.block_size())?;
        let first = present.checked_div(ag_bytes)?;
        let first_cut = AgNumber(u32::try_from(first).ok()?);
        Some(Shortfall { needed, present, first_cut, first_cut_present: present.checked_rem(ag_bytes)? })
    }

    /// Reads `length` bytes of a device; `what` names them in errors.
    ///
    /// # Errors
    /// [`Error::Io`] with the place; [`Error::Request`] where the device was not given.
    pub fn read(&self, device: Device, byte: ByteOffset, length: u32, what: impl Into<String>) -> Result<Block> {
        let place = Place::new(device, byte, u64::from(length), what);
        let Some(source) = self.devices.get(device) else {
            let option = if device == Device::Rt { "--rtdev" } else { "--logdev" };
            return Err(Error::request(format!("{place}: the {device} device was not given ({option})")));
        };
        let size = usize::try_from(length).unwrap_or(usize::MAX);
        // Never more than the device holds: a size from disk must not size an allocation alone.
        if u64::from(length) > source.len() {
            let source = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            return Err(Error::Io { place: Box::new(place), source });
        }
        let mut bytes = vec![0u8; size];
        match source.read_at(byte, &mut bytes) {
            Ok(()) => Ok(Block { bytes, place }),
            Err(source) => Err(Error::Io { place: Box::new(place), source }),
        }
    }

    /// A hint that bytes of the data device will be read soon, so that it works while the caller does.
    pub fn will_need(&self, byte: ByteOffset, length: u64) {
        let length = length.min(self.devices.data.len().saturating_sub(byte.0));
        if length > 0 {
            self.devices.data.will_need(byte, length);
        }
    }

    /// Fills `buf` from a device, for walks that keep their buffer; `what` names the bytes in an error.
    ///
    /// # Errors
    /// As [`Volume::read`].
    pub fn read_into(
        &self,
        device: Device,
        byte: ByteOffset,
        buf: &mut [u8],
        what: impl FnOnce() -> String,
    ) -> Result<()> {
        let length = u64::try_from(buf.len()).unwrap_or(u64::MAX);
        let place = |what: String| Place::new(device, byte, length, what);
        let Some(source) = self.devices.get(device) else {
            let option = if device == Device::Rt { "--rtdev" } else { "--logdev" };
            return Err(Error::request(format!("{}: the {device} device was not given ({option})", place(what()))));
        };
        source.read_at(byte, buf).map_err(|source| Error::Io { place: Box::new(place(what())), source })
    }

    /// Reads a header sector of an AG.
    ///
    /// # Errors
    /// [`Error::Request`] where there is no such AG, [`Error::Io`].
    pub fn ag_header(&self, ag: AgNumber, header: AgHeader) -> Result<Block> {
        let name = format!("{} {ag}", header.name());
        let Some(byte) = self.geometry.ag_header(ag, header.sector()) else {
            let count = self.geometry.ag_count;
            return Err(Error::request(format!(
                "{name}: no such AG, there are {count} (0 to {})",
                count.saturating_sub(1)
            )));
        };
        self.read(Device::Data, byte, self.context().sector_size, name)
    }

    /// Reads an inode.
    ///
    /// # Errors
    /// [`Error::Request`] where the number lies outside the AGs, [`Error::Io`].
    pub fn inode(&self, ino: Ino) -> Result<Block> {
        let Some(byte) = self.geometry.inode_byte(ino) else {
            return Err(Error::request(format!("inode {ino}: no such inode, the number lies outside the AGs")));
        };
        self.read(Device::Data, byte, self.context().inode_size, format!("inode {ino}"))
    }

    /// Reads `blocks` file system blocks of the data device, side by side.
    ///
    /// # Errors
    /// [`Error::Request`] where one of them does not exist, [`Error::Io`].
    pub fn blocks(&self, first: FsBlock, blocks: u32, what: impl Into<String>) -> Result<Block> {
        let what = what.into();
        let last = u64::from(blocks).checked_sub(1).and_then(|n| first.0.checked_add(n)).map(FsBlock);
        let ends = (self.geometry.split(first), last.and_then(|last| self.geometry.split(last)));
        let (Some((ag, within)), Some((last_ag, _))) = ends else {
            return Err(Error::request(format!("{what}: block {first} (+{blocks}) lies outside the data section")));
        };
        if ag != last_ag {
            return Err(Error::request(format!("{what}: blocks {first} (+{blocks}) cross the end of AG {ag}")));
        }
        let length = blocks.checked_mul(self.context().block_size);
        match (self.geometry.ag_block_byte(ag, within), length) {
            (Some(byte), Some(length)) => self.read(Device::Data, byte, length, what),
            _ => Err(Error::request(format!("{what}: {blocks} blocks are too many for one read"))),
        }
    }

    /// Reads blocks of the realtime section.
    ///
    /// # Errors
    /// [`Error::Request`] where one of them does not exist or the realtime device was not given, [`Error::Io`].
    pub fn rt_blocks(&self, first: RtBlock, blocks: u32, what: impl Into<String>) -> Result<Block> {
        let what = what.into();
        let last = u64::from(blocks).checked_sub(1).and_then(|n| first.0.checked_add(n)).map(RtBlock);
        let last = last.and_then(|last| self.geometry.rt_block_byte(last));
        let length = blocks.checked_mul(self.context().block_size);
        match (self.geometry.rt_block_byte(first), last, length) {
            (Some((device, byte)), Some(_), Some(length)) => self.read(device, byte, length, what),
            _ => Err(Error::request(format!("{what}: block {first} (+{blocks}) lies outside the realtime section"))),
        }
    }
}
