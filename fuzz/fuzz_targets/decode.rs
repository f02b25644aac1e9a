//! Any bytes as any structure: the first byte picks the row of `STRUCTURES`, the second the kind of file system.
//! Layout, text and field paths must end without a panic. No structure is named here, so a new one is fuzzed at once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use xfsinspect::format::{Context, STRUCTURES};
use xfsinspect::report::print::{Style, print};
use xfsinspect::report::select::select;
use xfsinspect::report::value::View;

fuzz_target!(|data: &[u8]| {
    let [kind, how, bytes @ ..] = data else { return };
    let mut context = Context::assumed(how & 1 == 0);
    context.block_size = 512 << ((how >> 1) & 7).min(7);
    context.dir_block_size = context.block_size.max(if how & 16 == 0 { 0 } else { 65536 });
    context.features.incompat = if how & 32 == 0 { 0xeb } else { 0x7ff };
    if how & 64 != 0 {
        context.features.incompat &= !1;
        context.features.features2 &= !0x200;
    }
    let row = &STRUCTURES[usize::from(*kind) % STRUCTURES.len()];
    let nodes = (row.layout)(&context, bytes);
    let view = View { bytes, context: &context };
    let mut out = String::new();
    print(&mut out, view, &nodes, Style { verbose: how & 128 != 0 });
    // What is shown is bounded by what is there.
    assert!(out.len() <= 65536 + bytes.len() * 2048, "{} bytes of text from {}", out.len(), bytes.len());
    for path in ["core.size", "u3.bmx[0-3].startblock", "recs[1-2].startoff", "bu[0].name", "unlinked[5]"] {
        let _ = select(&nodes, path, &context, bytes);
    }
});
