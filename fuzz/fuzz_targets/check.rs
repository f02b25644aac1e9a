//! A small file system with some damage (see patches.rs): it is checked as a whole, and its realtime section once more
//! as `rt` does it. No panic, no long run, a report that agrees with itself.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../checked.rs"]
mod checked;
#[path = "../patches.rs"]
mod patches;

fuzz_target!(
    init: patches::read_all(),
    |data: &[u8]| {
    if let Some(volume) = patches::damaged(data).volume {
        checked::run(&volume);
    }
}
);
