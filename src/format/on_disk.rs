//! The `on_disk!` table of a fixed structure, and what a row of it knows.
//!
//! A block
//! ```text
//! on_disk! {
//!     /// What it is; `struct xfs_agf`; who verifies it.
//!     pub struct Agf, size 224 {
//!         /// Blocks in this AG.
//!         12 length: AgBlock,
//!         16 bno_root: AgBlock [.named("bnoroot").to(Type::Bnobt)],
//!         /// Flag bits.
//!         90 flags: u16 [.hex().hidden()] { /// Data on the realtime device. realtime: 15 + 1, … },
//!     }
//! }
//! ```
//! gives the struct with its decoder, stops the build when an offset or the size is wrong, and fills
//! [`Structure::FIELDS`]. Options in brackets are methods of [`Field`]; rows in braces are views of bits within the
//! field above (`first bit + number of bits`, counted from the top).

use super::{Context, Type};
use crate::units::{
    AgBlock, AgIno, AgNumber, Blocks, Daddr, ExtLen, FileBlock, FsBlock, Ino, RgBlock, RtBlock, RtExtent,
};
use binrw::BinRead;
use std::fmt;

/// How a value is written by xfs_db (field.c's kinds, told by what they mean).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Unsigned decimal.
    Dec,
    /// Signed decimal.
    Signed,
    /// `0x…`, but plain `0` for zero.
    Hex,
    /// `0…`, but plain `0` for zero.
    Oct,
    /// Unsigned decimal, stored little-endian.
    DecLittle,
    /// Hexadecimal, stored little-endian.
    HexLittle,
    /// Bytes as a quoted string with C escapes.
    Text,
    /// 16 bytes as a UUID.
    Uuid,
    /// CRC32c, little-endian, with its state in parentheses.
    Crc,
    /// Seconds of an inode timestamp as a date; legacy form: signed seconds and nanoseconds of 32 bits each.
    TimeSec,
    /// Nanoseconds of such a timestamp.
    TimeNsec,
    /// Seconds of a bigtime timestamp as a date: nanoseconds since December 1901 in 64 bits.
    BigTimeSec,
    /// Nanoseconds of a bigtime timestamp.
    BigTimeNsec,
    /// Seconds of a quota timer (32 bits) as a date, or the number where it is none.
    QuotaTimer,
    /// Fork format with its name: `2 (extents)`.
    ForkFormat,
    /// Kind of a metadata file with its name: `1 (dir)`.
    MetaType,
}

/// What the all-ones and the zero value mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Null {
    /// Numbers like any other.
    Plain,
    /// All ones is written `null`.
    Named,
    /// All ones is left out of arrays.
    Skipped,
    /// Zero is left out of arrays.
    ZeroSkipped,
    /// All ones is written `null`, zero is left out.
    NamedZeroSkipped,
}

/// One row of a table: what a field is called, where it lies, how it is shown, when it exists.
#[derive(Clone, Copy)]
pub struct Field {
    /// xfs_db's name.
    pub name: &'static str,
    /// The kernel's name without prefix (`agf_bno_root` → `bno_root`).
    pub kernel_name: &'static str,
    /// First bit, from the start of the structure.
    pub bit: u32,
    /// Bits of one element.
    pub bits: u32,
    /// Number of elements; 1 for a plain value.
    pub count: u32,
    /// Shown with an index?
    pub array: bool,
    /// How to write it.
    pub format: Format,
    /// Meaning of all ones and zero.
    pub null: Null,
    /// What it points to.
    pub points_to: Option<Type>,
    /// Left out when everything is printed; still reachable by name.
    pub skip: bool,
    /// Shown after this field instead of in disk order (xfs_db groups some).
    pub placed_after: Option<&'static str>,
    /// Does it exist here? Given the file system and the structure's own bytes.
    pub exists: fn(&Context, &[u8]) -> bool,
    /// Meaning, one line.
    pub doc: &'static str,
}

impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}+{}x{}", self.name, self.bit, self.bits, self.count)
    }
}

fn always(_: &Context, _: &[u8]) -> bool {
    true
}

fn never(_: &Context, _: &[u8]) -> bool {
    false
}

impl Field {
    /// A row as the macro begins it.
    pub const fn new<T: FieldType>(name: &'static str, bit: u32, doc: &'static str) -> Self {
        Self {
            name,
            kernel_name: name,
            bit,
            bits: T::BITS,
            count: T::COUNT,
            array: T::COUNT > 1,
            format: T::FORMAT,
            null: T::NULL,
            points_to: None,
            skip: false,
            placed_after: None,
            exists: always,
            doc,
        }
    }
    /// A view of some bits of a field.
    pub const fn view(name: &'static str, bit: u32, bits: u32, doc: &'static str) -> Self {
        let mut field = Self::new::<u8>(name, bit, doc);
        field.bits = bits;
        field
    }
    /// xfs_db's name where it is not the kernel's.
    pub const fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }
    /// Write it in this way.
    pub const fn fmt(mut self, format: Format) -> Self {
        self.format = format;
        self
    }
    /// Write it in hexadecimal.
    pub const fn hex(self) -> Self {
        self.fmt(Format::Hex)
    }
    /// An array of bytes that is one string.
    pub const fn text(mut self) -> Self {
        self.format = Format::Text;
        self.bits = self.bits.saturating_mul(self.count);
        self.count = 1;
        self.array = false;
        self
    }
    /// What all ones and zero mean.
    pub const fn null(mut self, null: Null) -> Self {
        self.null = null;
        self
    }
    /// It points to a structure of this type.
    pub const fn to(mut self, target: Type) -> Self {
        self.points_to = Some(target);
        self
    }
    /// Exists only where `f` says so.
    pub const fn when(mut self, f: fn(&Context, &[u8]) -> bool) -> Self {
        self.exists = f;
        self
    }
    /// Only its views exist: the field is a union or a packed word.
    pub const fn unnamed(self) -> Self {
        self.when(never)
    }
    /// Not shown when everything is printed.
    pub const fn hidden(mut self) -> Self {
        self.skip = true;
        self
    }
    /// Shown after the field of that name.
    pub const fn after(mut self, name: &'static str) -> Self {
        self.placed_after = Some(name);
        self
    }
}

/// A type that may stand in a table.
pub trait FieldType {
    /// Bytes on disk.
    const SIZE: usize;
    /// Bits of one element.
    const BITS: u32;
    /// Elements.
    const COUNT: u32 = 1;
    /// Usual print format.
    const FORMAT: Format = Format::Dec;
    /// Usual meaning of all ones.
    const NULL: Null = Null::Plain;
}

macro_rules! field_types {
    ($( $t:ty, $size:literal, $bits:literal, $format:ident, $null:ident; )*) => { $(
        impl FieldType for $t {
            const SIZE: usize = $size;
            const BITS: u32 = $bits;
            const FORMAT: Format = Format::$format;
            const NULL: Null = Null::$null;
        }
    )* };
}

field_types! {
    u8, 1, 8, Dec, Plain;
    u16, 2, 16, Dec, Plain;
    u32, 4, 32, Dec, Plain;
    u64, 8, 64, Dec, Plain;
    u128, 16, 128, Hex, Plain;
    i8, 1, 8, Signed, Plain;
    i64, 8, 64, Signed, Plain;
    Crc, 4, 32, Crc, Plain;
    Uuid, 16, 128, Uuid, Plain;
    AgNumber, 4, 32, Dec, Named;
    AgBlock, 4, 32, Dec, Named;
    AgIno, 4, 32, Dec, Named;
    FsBlock, 8, 64, Dec, Named;
    Ino, 8, 64, Dec, Named;
    FileBlock, 8, 64, Dec, Plain;
    RtBlock, 8, 64, Dec, Named;
    RtExtent, 8, 64, Dec, Named;
    RgBlock, 4, 32, Dec, Named;
    Daddr, 8, 64, Dec, Plain;
    ExtLen, 4, 32, Dec, Plain;
    Blocks, 8, 64, Dec, Named;
}

impl<T: FieldType, const N: usize> FieldType for [T; N] {
    const SIZE: usize = T::SIZE.saturating_mul(N);
    const BITS: u32 = T::BITS;
    #[allow(clippy::as_conversions)] // OK: N is a literal of a table, far below 2^32
    const COUNT: u32 = N as u32;
    const FORMAT: Format = T::FORMAT;
    const NULL: Null = T::NULL;
}

/// A checksum field: little-endian, unlike everything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BinRead)]
#[br(little)]
pub struct Crc(pub u32);

impl std::fmt::Display for Crc {
    /// As xfs_db prints it: the bytes in the order of the disk.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0.swap_bytes())
    }
}

/// A UUID field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BinRead)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// All zeros?
    pub fn is_nil(&self) -> bool {
        self.0 == [0; 16]
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        uuid::Uuid::from_bytes(self.0).hyphenated().fmt(f)
    }
}

/// A fixed structure: what its table gives.
pub trait Structure: Sized {
    /// Bytes on disk.
    const SIZE: usize;
    /// The rows, in disk order.
    const FIELDS: &'static [Field];
    /// Decodes the structure at the start of `bytes`; `None` when they are too few. Never judges a value.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

/// Defines a fixed structure; see the module's text.
#[macro_export]
#[doc(hidden)]
macro_rules! __on_disk {
    ( $( $(#[doc = $sdoc:literal])* pub struct $name:ident, size $size:literal { $(
        $(#[doc = $doc:literal])* $off:literal $f:ident : $t:ty
        $([ $($opt:tt)* ])?
        $({ $( $(#[doc = $vdoc:literal])* $v:ident : $vbit:literal + $vlen:literal $([ $($vopt:tt)* ])? ),* $(,)? })?
    ),* $(,)? } )* ) => { $(
        $(#[doc = $sdoc])*
        #[derive(Clone, Debug, binrw::BinRead)]
        #[br(big)]
        pub struct $name { $( $(#[doc = $doc])* pub $f: $t, )* }

        const _: () = {
            let mut at = 0usize;
            $(
                assert!(at == $off, concat!(stringify!($name), ".", stringify!($f), ": wrong offset"));
                at = at.saturating_add(<$t as $crate::format::on_disk::FieldType>::SIZE);
            )*
            assert!(at == $size, concat!(stringify!($name), ": wrong size"));
        };

        impl $crate::format::Structure for $name {
            const SIZE: usize = $size;
            const FIELDS: &'static [$crate::format::Field] = &[ $(
                $crate::format::Field::new::<$t>(stringify!($f), $off * 8, concat!($($doc),*)) $($($opt)*)?,
                $($(
                    $crate::format::Field::view(stringify!($v), $off * 8 + $vbit, $vlen, concat!($($vdoc),*))
                        $($($vopt)*)?,
                )*)?
            )* ];
            fn decode(bytes: &[u8]) -> Option<Self> {
                let mut reader = std::io::Cursor::new(bytes.get(..$size)?);
                binrw::BinRead::read(&mut reader).ok()
            }
        }
    )* };
}
pub use crate::__on_disk as on_disk;
