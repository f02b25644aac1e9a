//! AGs side by side, on a few threads of this call's own: the work items are few and large, so a counter hands them
//! out, and no pool outlives the call.

use super::{Walk, group};
use crate::units::AgNumber;
use std::sync::Mutex;
use std::sync::PoisonError;

/// Threads to use where nobody said how many: one per core.
pub fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Does `work` for every item on up to `threads` threads. The results come in the order of the items.
pub fn over<T: Send, L: IntoIterator>(items: L, threads: usize, work: impl Fn(L::Item) -> T + Sync) -> Vec<T>
where
    L::IntoIter: Send,
{
    over_with(items, threads, || (), |(), item| work(item))
}

/// The same, with something that each thread makes for itself and keeps from one item to the next: buffers.
pub fn over_with<L: IntoIterator, S, T: Send>(
    items: L,
    threads: usize,
    begin: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, L::Item) -> T + Sync,
) -> Vec<T>
where
    L::IntoIter: Send,
{
    if threads <= 1 {
        let mut kept = begin();
        return items.into_iter().map(|item| work(&mut kept, item)).collect();
    }
    let left = Mutex::new(items.into_iter().enumerate());
    let take = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        let (mut kept, mut done) = (begin(), Vec::new());
        while let Some((at, item)) = take() {
            done.push((at, work(&mut kept, item)));
        }
        done
    };
    let mut all: Vec<(usize, T)> = std::thread::scope(|scope| {
        // Where the system has no more threads (a limit of processes), those that there are do the work.
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, run).ok();
        let others: Vec<_> = (1..threads.min(256)).map_while(spawn).collect();
        let mut done = run();
        for other in others {
            // OK: a panic of a thread goes on as a panic here, as it would without threads.
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

/// Does `work` for every AG on up to `threads` threads. The results come in the order of the AGs.
pub fn per_ag<T: Send>(walk: &Walk<'_>, threads: usize, work: impl Fn(AgNumber) -> T + Sync) -> Vec<T> {
    over(group::numbers(walk), threads, work)
}
