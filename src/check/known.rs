//! "Not looked at" is never "not there": what was gathered from many places is known only where all of them were wholly
//! seen, and what is not known cannot be compared.

/// A total, a set or a list, if all that it is made of was seen. Only [`Known::get`] gives it away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known<T>(Option<T>);

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

impl<T> Known<T> {
    /// Some of it was not seen.
    pub const UNKNOWN: Self = Self(None);

    /// `value`, if it was wholly `seen`.
    pub fn when(seen: bool, value: T) -> Self {
        Self(seen.then_some(value))
    }

    /// The value, where it is known.
    pub const fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }

    /// Is it known?
    pub const fn is_known(&self) -> bool {
        self.0.is_some()
    }

    /// Known only where `other` is, too.
    #[must_use]
    pub fn and<U>(self, other: Known<U>) -> Known<(T, U)> {
        Known(self.0.zip(other.0))
    }

    /// What `change` makes of it.
    #[must_use]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Known<U> {
        Known(self.0.map(change))
    }
}

/// The sum of all, known only where each is.
impl std::iter::Sum for Known<u64> {
    fn sum<I: Iterator<Item = Self>>(mut all: I) -> Self {
        Self(all.try_fold(0u64, |sum, one| Some(sum.saturating_add(one.0?))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unknown_part_makes_the_whole_unknown() {
        let sum = |parts: &[Known<u64>]| parts.iter().copied().sum::<Known<u64>>();
        assert_eq!(sum(&[Known::when(true, 3), Known::when(true, 4)]).get(), Some(&7));
        assert!(!sum(&[Known::when(true, 3), Known::when(false, 4)]).is_known());
        assert!(!Known::when(true, 1u64).and(Known::<u64>::UNKNOWN).is_known());
    }
}
