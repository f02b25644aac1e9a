//! A Source over bytes in memory: tests, fuzzing, blocks cut from an image.

use super::{Source, past_end, range_within};
use crate::units::ByteOffset;
use std::io;

/// Bytes in memory as a device.
#[derive(Clone, Debug, Default)]
pub struct MemorySource(Vec<u8>);

impl MemorySource {
    /// Takes the bytes over.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }
}

impl Source for MemorySource {
    fn len(&self) -> u64 {
        u64::try_from(self.0.len()).unwrap_or(u64::MAX)
    }

    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
        let range = range_within(offset, buf.len(), self.len())?;
        let bytes = self.0.get(range).ok_or_else(|| past_end(offset, buf.len(), self.len()))?;
        buf.copy_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_exactly_or_not_at_all() {
        let source = MemorySource::new([1, 2, 3, 4]);
        let mut two = [0; 2];
        source.read_at(ByteOffset(2), &mut two).expect("within");
        assert_eq!(two, [3, 4]);
        let past = source.read_at(ByteOffset(3), &mut two).expect_err("past the end");
        assert_eq!(past.kind(), io::ErrorKind::UnexpectedEof);
        assert!(source.read_at(ByteOffset(u64::MAX), &mut two).is_err());
    }
}
