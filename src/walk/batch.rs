//! Many blocks with few reads: the wanted ones sorted by disk address, neighbours and near ones read together.

use crate::geometry::Geometry;
use crate::units::{AgBlock, AgNumber, Device, FsBlock};
use crate::volume::Volume;

/// Blocks that lie between two wanted ones are read along, up to so many bytes: a read costs more than they do.
const GAP: u64 = 16 * 1024;
/// Largest read.
const LARGEST: u64 = 4 << 20;

/// Blocks that were read together. The buffer is kept from one load to the next.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    buffer: Vec<u8>,
    used: usize,
    index: Vec<(FsBlock, usize)>,
}

/// Wanted blocks that one read covers.
struct Run {
    ag: AgNumber,
    first: AgBlock,
    blocks: u32,
}

impl Batch {
    /// Reads `wanted`, each of them one block. What cannot be read, or does not exist, is left out.
    pub(crate) fn load(&mut self, volume: &Volume, wanted: &mut Vec<FsBlock>) {
        self.used = 0;
        self.index.clear();
        wanted.sort_unstable();
        wanted.dedup();
        let mut rest = wanted.as_slice();
        let mut next = next_run(volume.geometry(), rest);
        while let Some((run, taken)) = next {
            let (these, more) = rest.split_at_checked(taken).unwrap_or((rest, &[]));
            rest = more;
            next = next_run(volume.geometry(), rest);
            if let Some(ahead) = next.as_ref().and_then(|(run, _)| run.as_ref())
                && let Some(byte) = volume.geometry().ag_block_byte(ahead.ag, ahead.first)
            {
                let length = u64::from(ahead.blocks).saturating_mul(volume.geometry().block_size());
                volume.will_need(byte, length);
            }
            if let Some(run) = run
                && !self.read(volume, &run, these)
                && these.len() > 1
            {
                for &block in these {
                    if let Some((ag, first)) = volume.geometry().split(block) {
                        self.read(volume, &Run { ag, first, blocks: 1 }, &[block]);
                    }
                }
            }
        }
    }

    fn read(&mut self, volume: &Volume, run: &Run, blocks: &[FsBlock]) -> bool {
        self.try_read(volume, run, blocks).is_some()
    }

    fn try_read(&mut self, volume: &Volume, run: &Run, blocks: &[FsBlock]) -> Option<()> {
        let geometry = volume.geometry();
        let size = usize::try_from(geometry.block_size()).ok()?;
        let start = self.used;
        let end = start.checked_add(usize::try_from(run.blocks).ok()?.checked_mul(size)?)?;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        let byte = geometry.ag_block_byte(run.ag, run.first)?;
        let into = self.buffer.get_mut(start..end)?;
        volume.read_into(Device::Data, byte, into, String::new).ok()?;
        let first = geometry.join(run.ag, run.first)?;
        for &block in blocks {
            let before = usize::try_from(block.0.checked_sub(first.0)?).ok()?.checked_mul(size)?;
            self.index.push((block, start.checked_add(before)?));
        }
        self.used = end;
        Some(())
    }

    /// The bytes of a block, if it was read.
    pub(crate) fn get(&self, block: FsBlock, size: usize) -> Option<&[u8]> {
        let at = self.index.binary_search_by_key(&block, |&(block, _)| block).ok()?;
        let &(_, start) = self.index.get(at)?;
        self.buffer.get(start..start.checked_add(size)?)
    }
}

/// The next read and how many of the wanted blocks it covers; `None` at the end. A block that does not exist makes
/// a run of its own, without a read.
fn next_run(geometry: &Geometry, wanted: &[FsBlock]) -> Option<(Option<Run>, usize)> {
    let (&first_block, more) = wanted.split_first()?;
    let Some((ag, first)) = geometry.split(first_block) else { return Some((None, 1)) };
    let size = geometry.block_size();
    let mut run = Run { ag, first, blocks: 1 };
    let mut taken = 1usize;
    for &block in more {
        let Some((other, within)) = geometry.split(block) else { break };
        let Some(blocks) = within.0.checked_sub(first.0).and_then(|n| n.checked_add(1)) else { break };
        let gap = u64::from(blocks.saturating_sub(run.blocks).saturating_sub(1)).saturating_mul(size);
        if other != ag || gap > GAP || u64::from(blocks).saturating_mul(size) > LARGEST {
            break;
        }
        run.blocks = blocks;
        taken = taken.saturating_add(1);
    }
    Some((Some(run), taken))
}
