//! A small file system with some damage (see patches.rs): everything that the commands show of it, as text and as JSON.
//! No panic, no long run, nothing that would reach a terminal as it stands on disk.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../checked.rs"]
mod checked;
#[path = "../patches.rs"]
mod patches;
#[path = "../printed.rs"]
mod printed;

fuzz_target!(
    init: patches::read_all(),
    |data: &[u8]| printed::run(&patches::damaged(data))
);
