//! One inode: its bytes, its number, where it lies.

use super::corrupt;
use crate::error::{Error, Place, Result};
use crate::format::checksum::{self, CrcState};
use crate::format::dinode::CRC_OFFSET;
use crate::format::dinode_view::Dinode;
use crate::units::{Device, Ino};
use crate::volume::Volume;
use std::ops::Deref;

/// An inode in memory, with its number. The fields are methods of [`Dinode`].
#[derive(Clone, Copy, Debug)]
pub struct Inode<'a> {
    /// Its number, from where it lies.
    pub ino: Ino,
    view: Dinode<'a>,
}

impl<'a> Inode<'a> {
    /// The inode `ino` in these bytes.
    pub const fn new(ino: Ino, bytes: &'a [u8]) -> Self {
        Self { ino, view: Dinode::new(bytes) }
    }

    /// Its fields.
    pub const fn view(&self) -> Dinode<'a> {
        self.view
    }

    /// Does its checksum hold? Inodes before version 3 have none.
    pub fn crc(&self) -> CrcState {
        if self.view.version() < 3 { CrcState::Unchecked } else { checksum::verify(self.view.bytes(), CRC_OFFSET) }
    }

    /// Where it lies.
    pub fn place(&self, volume: &Volume) -> Place {
        let byte = volume.geometry().inode_byte(self.ino).unwrap_or_default();
        Place::new(Device::Data, byte, u64::from(volume.context().inode_size), format!("inode {}", self.ino))
    }

    /// The error for a checksum that does not hold.
    pub fn crc_error(&self, volume: &Volume) -> Option<Error> {
        let CrcState::Bad { computed } = self.crc() else { return None };
        let stored = crate::format::bits::array(self.view.bytes(), CRC_OFFSET).map_or(0, u32::from_le_bytes);
        let place = self.place(volume).field("crc");
        Some(corrupt(place, "the checksum is wrong", crate::format::Crc(stored), crate::format::Crc(computed)))
    }
}

impl<'a> Deref for Inode<'a> {
    type Target = Dinode<'a>;

    fn deref(&self) -> &Dinode<'a> {
        &self.view
    }
}

/// An inode with its own bytes.
#[derive(Clone, Debug)]
pub struct InodeBlock {
    ino: Ino,
    bytes: Vec<u8>,
    place: Place,
}

impl InodeBlock {
    /// The inode.
    pub fn inode(&self) -> Inode<'_> {
        Inode::new(self.ino, &self.bytes)
    }

    /// Its number.
    pub fn ino(&self) -> Ino {
        self.ino
    }

    /// Where it lies.
    pub fn place(&self) -> &Place {
        &self.place
    }
}

/// Reads an inode and makes sure that it is one, and the one.
pub(super) fn read(volume: &Volume, ino: Ino) -> Result<InodeBlock> {
    let block = volume.inode(ino)?;
    let inode = Inode::new(ino, &block.bytes);
    check_identity(inode, &block.place)?;
    Ok(InodeBlock { ino, bytes: block.bytes, place: block.place })
}

/// Is there an inode at all, and is it the one that should lie here?
pub(super) fn check_identity(inode: Inode<'_>, place: &Place) -> Result<()> {
    if !inode.has_magic() {
        let found = crate::format::bits::be16(inode.bytes(), 0).unwrap_or(0);
        let found = format!("{found:#x}");
        return Err(corrupt(place.field("magic"), "no inode there", found, "0x494e \"IN\""));
    }
    match inode.own_number() {
        Some(own) if own != inode.ino => {
            Err(corrupt(place.field("inumber"), "the inode says it is another one", own, inode.ino))
        }
        _ => Ok(()),
    }
}
