//! Histogram of free extents, with the columns and figures of xfs_db's `freesp`.

use std::fmt::Write;

/// How sizes are put into buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Buckets {
    /// 1, n, n², … (n at least 2).
    Powers(u64),
    /// 1, 1 + n, 1 + 2n, … (n at least 1).
    Equal(u64),
    /// These first sizes, and 1.
    From(Vec<u64>),
}

/// Most buckets that are made.
const MOST: usize = 1 << 16;

/// One bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Smallest size in it.
    pub low: u64,
    /// Largest size in it.
    pub high: u64,
    /// Extents.
    pub extents: u64,
    /// Blocks of these.
    pub blocks: u64,
}

/// Extents counted by size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    buckets: Vec<Bucket>,
    /// All extents, also those too large for any bucket.
    pub extents: u64,
    /// All blocks.
    pub blocks: u64,
    /// Blocks of the largest extent.
    pub longest: u64,
}

impl Histogram {
    /// An empty one for sizes up to `largest`.
    pub fn new(kind: &Buckets, largest: u64) -> Self {
        let mut lows: Vec<u64> = match kind {
            Buckets::Powers(n) => std::iter::successors(Some(1u64), |&low| low.checked_mul((*n).max(2)))
                .take_while(|&l| l < largest)
                .collect(),
            Buckets::Equal(n) => {
                let next = |&low: &u64| low.checked_add((*n).max(1));
                std::iter::successors(Some(1u64), next).take_while(|&low| low < largest).take(MOST).collect()
            }
            Buckets::From(lows) => lows.iter().copied().filter(|&low| low > 1).chain([1]).take(MOST).collect(),
        };
        lows.sort_unstable();
        lows.dedup();
        if lows.is_empty() {
            lows.push(1);
        }
        let highs = lows.iter().skip(1).map(|low| low.saturating_sub(1)).chain([largest]);
        let buckets = lows.iter().zip(highs).map(|(&low, high)| Bucket { low, high, extents: 0, blocks: 0 }).collect();
        Self { buckets, extents: 0, blocks: 0, longest: 0 }
    }

    /// Counts an extent.
    pub fn add(&mut self, length: u64) {
        self.extents = self.extents.saturating_add(1);
        self.blocks = self.blocks.saturating_add(length);
        self.longest = self.longest.max(length);
        let at = self.buckets.partition_point(|bucket| bucket.high < length);
        if let Some(bucket) = self.buckets.get_mut(at) {
            bucket.extents = bucket.extents.saturating_add(1);
            bucket.blocks = bucket.blocks.saturating_add(length);
        }
    }

    /// Takes the counts of another one with the same buckets in.
    pub fn merge(&mut self, other: &Self) {
        self.extents = self.extents.saturating_add(other.extents);
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.longest = self.longest.max(other.longest);
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            mine.extents = mine.extents.saturating_add(theirs.extents);
            mine.blocks = mine.blocks.saturating_add(theirs.blocks);
        }
    }

    /// The buckets that hold something.
    pub fn filled(&self) -> impl DoubleEndedIterator<Item = &Bucket> {
        self.buckets.iter().filter(|bucket| bucket.extents > 0)
    }

    /// The table of `freesp`: from, to, extents, blocks, per cent of the blocks, and per cent of blocks and extents in
    /// this and all larger buckets.
    pub fn text(&self) -> String {
        let width = |least: usize, value: fn(&Bucket) -> u64| {
            self.filled().map(|bucket| value(bucket).to_string().len()).max().unwrap_or(0).max(least)
        };
        let widths = [width(7, |b| b.low), width(7, |b| b.high), width(7, |b| b.extents), width(6, |b| b.blocks)];
        let [from, to, extents, blocks] = widths;
        let mut out = format!(
            "{:>from$} {:>to$} {:>extents$} {:>blocks$} {:>6} {:>6} {:>6}\n",
            "from", "to", "extents", "blocks", "pct", "blkcdf", "extcdf"
        );
        let mut left =
            (self.buckets.iter().map(|b| b.blocks).sum::<u64>(), self.buckets.iter().map(|b| b.extents).sum::<u64>());
        for bucket in self.filled() {
            let _ = writeln!(
                out,
                "{:>from$} {:>to$} {:>extents$} {:>blocks$} {:6.2} {:6.2} {:6.2}",
                bucket.low,
                bucket.high,
                bucket.extents,
                bucket.blocks,
                percent(bucket.blocks, self.blocks),
                percent(left.0, self.blocks),
                percent(left.1, self.extents),
            );
            left = (left.0.saturating_sub(bucket.blocks), left.1.saturating_sub(bucket.extents));
        }
        out
    }

    /// The three lines of `freesp -s`.
    pub fn summary(&self) -> String {
        let average =
            if self.extents == 0 { "0".to_owned() } else { general(self.blocks as f64 / self.extents as f64) };
        format!(
            "total free extents {}\ntotal free blocks {}\naverage free extent size {average}\n",
            self.extents, self.blocks
        )
    }
}

/// `part` of `whole` in per cent; 0 of nothing.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// A number as C's `%g`: six significant digits, without trailing zeros.
pub fn general(value: f64) -> String {
    let scientific = format!("{value:.5e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let Ok(exponent) = exponent.parse::<i32>() else { return scientific };
    let trim = |text: &str| {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text.to_owned() }
    };
    if (-4..6).contains(&exponent) {
        let places = usize::try_from(5i32.saturating_sub(exponent)).unwrap_or(0);
        trim(&format!("{value:.places$}"))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(digits), exponent.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_freesp_prints_it() {
        // xfs_db 7.2, freesp of a V4 file system with agblocks 8192.
        let mut histogram = Histogram::new(&Buckets::Powers(2), 8192);
        for length in [[1; 19].as_slice(), &[2, 15, 25, 3000, 3000, 3200, 5000, 6565]].concat() {
            histogram.add(length);
        }
        assert_eq!(
            histogram.text(),
            "   from      to extents blocks    pct blkcdf extcdf
      1       1      19     19   0.09 100.00 100.00
      2       3       1      2   0.01  99.91  29.63
      8      15       1     15   0.07  99.90  25.93
     16      31       1     25   0.12  99.83  22.22
   2048    4095       3   9200  44.18  99.71  18.52
   4096    8192       2  11565  55.53  55.53   7.41
"
        );
        assert_eq!(
            histogram.summary(),
            "total free extents 27\ntotal free blocks 20826\naverage free extent size 771.333\n"
        );
    }

    #[test]
    fn numbers_as_c_prints_them() {
        let cases = [(0.0, "0"), (1810.6, "1810.6"), (2505.75, "2505.75"), (1234567.0, "1.23457e+06")];
        for (value, text) in cases.into_iter().chain([(999_999.5, "1e+06"), (0.00001234, "1.234e-05"), (100.0, "100")])
        {
            assert_eq!(general(value), text);
        }
    }

    #[test]
    fn buckets_of_every_kind() {
        let lows =
            |kind, largest| Histogram::new(&kind, largest).buckets.iter().map(|b| (b.low, b.high)).collect::<Vec<_>>();
        assert_eq!(lows(Buckets::Powers(10), 500), [(1, 9), (10, 99), (100, 500)]);
        assert_eq!(lows(Buckets::Equal(100), 250), [(1, 100), (101, 200), (201, 250)]);
        assert_eq!(lows(Buckets::From(vec![8, 4, 1]), 20), [(1, 3), (4, 7), (8, 20)]);
        assert_eq!(lows(Buckets::Powers(0), 0), [(1, 0)]);
        assert_eq!(lows(Buckets::Equal(0), u64::MAX).len(), MOST);
    }
}
