//! A device with some of its bytes replaced, which counts what is read of it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use xfsinspect::source::Source;
use xfsinspect::units::ByteOffset;

/// The device; no patch is longer than 64 KiB.
pub struct Overlay {
    beneath: Arc<dyn Source>,
    patches: BTreeMap<u64, Vec<u8>>,
    reads: AtomicU64,
}

impl Overlay {
    /// `patches`: bytes by where they begin.
    pub fn new(beneath: Arc<dyn Source>, patches: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Arc<Self> {
        let patches: BTreeMap<u64, Vec<u8>> = patches.into_iter().collect();
        assert!(patches.values().all(|bytes| bytes.len() <= 1 << 16), "a patch longer than 64 KiB");
        Arc::new(Self { beneath, patches, reads: AtomicU64::new(0) })
    }

    /// How often it was read.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }
}

impl Source for Overlay {
    fn len(&self) -> u64 {
        self.beneath.len()
    }
    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.beneath.read_at(offset, buf)?;
        let (first, end) = (offset.0, offset.0 + buf.len() as u64);
        for (&at, bytes) in self.patches.range(first.saturating_sub(1 << 16)..end) {
            let (from, to) = (at.max(first), (at + bytes.len() as u64).min(end));
            if from < to {
                buf[(from - first) as usize..(to - first) as usize]
                    .copy_from_slice(&bytes[(from - at) as usize..(to - at) as usize]);
            }
        }
        Ok(())
    }
}
