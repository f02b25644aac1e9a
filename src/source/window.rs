//! A part of another Source: a partition, the file system inside an md member, an image at an offset.

use super::{Source, past_end};
use crate::units::ByteOffset;
use std::io;

/// `length` bytes of a Source from `start` on, addressed from 0.
#[derive(Debug)]
pub struct Window<S> {
    inner: S,
    start: u64,
    length: u64,
}

impl<S: Source> Window<S> {
    /// The window from `start` to the end of `inner`, or `length` bytes if that is less.
    /// A start past the end gives an empty window.
    pub fn new(inner: S, start: ByteOffset, length: Option<u64>) -> Self {
        let rest = inner.len().saturating_sub(start.0);
        let length = length.map_or(rest, |n| n.min(rest));
        Self { inner, start: start.0, length }
    }
}

impl<S: Source> Source for Window<S> {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
        let wanted = u64::try_from(buf.len()).unwrap_or(u64::MAX);
        let within = offset.0.checked_add(wanted).is_some_and(|end| end <= self.length);
        match self.start.checked_add(offset.0) {
            Some(at) if within => self.inner.read_at(ByteOffset(at), buf),
            _ => Err(past_end(offset, buf.len(), self.length)),
        }
    }

    fn read_if_cached(&self, offset: ByteOffset, buf: &mut [u8]) -> bool {
        let wanted = u64::try_from(buf.len()).unwrap_or(u64::MAX);
        let within = offset.0.checked_add(wanted).is_some_and(|end| end <= self.length);
        match self.start.checked_add(offset.0) {
            Some(at) if within => self.inner.read_if_cached(ByteOffset(at), buf),
            _ => false,
        }
    }

    fn will_need(&self, offset: ByteOffset, length: u64) {
        if let Some(at) = self.start.checked_add(offset.0) {
            self.inner.will_need(ByteOffset(at), length.min(self.length.saturating_sub(offset.0)));
        }
    }

    fn sector_size(&self) -> u32 {
        self.inner.sector_size()
    }
}

#[cfg(test)]
mod tests {
    use super::super::MemorySource;
    use super::*;

    #[test]
    fn shows_only_its_part() {
        let window = Window::new(MemorySource::new([0, 1, 2, 3, 4, 5]), ByteOffset(2), Some(3));
        assert_eq!(window.len(), 3);
        let mut three = [0; 3];
        window.read_at(ByteOffset(0), &mut three).expect("whole window");
        assert_eq!(three, [2, 3, 4]);
        assert!(window.read_at(ByteOffset(1), &mut three).is_err());
        assert_eq!(Window::new(MemorySource::new([0; 4]), ByteOffset(9), None).len(), 0);
    }
}
