//! Small file systems with random damage, the same ones for every run: the way of the fuzz targets `check` and `print`,
//! in a few seconds. XFSINSPECT_PATCHES=N tries N of them on each image.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use xfsinspect::check::Verdict;

#[path = "../fuzz/checked.rs"]
mod checked;
#[path = "../fuzz/patches.rs"]
mod patches;
#[path = "../fuzz/printed.rs"]
mod printed;

/// Small and repeatable: the generator of Knuth's MMIX.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u8 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u8
    }

    /// An input of one to four patches; operands are small more often than not.
    fn input(&mut self, base: u8) -> Vec<u8> {
        let mut input = vec![base];
        for _ in 0..=self.next() % 4 {
            input.extend((0..4).map(|_| self.next()));
            // Every fourth leaves the checksum as it was, every fourth goes for bytes.
            let (what, how) = (self.next() & 15, self.next());
            let flags = if how & 3 == 0 { 16 } else { 0 } | if how & 12 == 0 { 32 } else { 0 };
            let small = self.next();
            let high = if small & 1 == 0 { [0; 2] } else { [self.next(), self.next()] };
            input.extend([what | flags, self.next(), high[0], high[1]]);
        }
        input
    }
}

/// What fuzzing found, with what was wrong.
const FOUND: &[(&str, &[u8])] = &[
    ("a copy with an empty label: a finding without a value", &[9, 0x58, 0xb1, 0x2d, 0xf9, 0x14, 0, 2, 0x1a]),
    ("2^64 - 1 realtime extents: a window of the summary after the other, forever", &[6, 0, 0, 4, 0, 0x13, 0, 0, 0]),
    ("2^63 realtime blocks and more: fsmap one block after the other", &[0x0d, 0, 0, 0x10, 0, 0xf3, 0xfe, 0, 0]),
    (
        "8000 attributes that claim the same value: 200 MB of text from a block",
        &[0x2c, 6, 0x9a, 0x81, 7, 0x19, 0xf3, 0, 0x4d, 0x4d, 0x4d, 0x4d, 0x4d, 0x4d, 0x0d],
    ),
];

#[test]
fn what_was_found_before() {
    for (what, input) in FOUND {
        let damaged = patches::damaged(input);
        println!("{what}");
        if let Some(volume) = &damaged.volume {
            checked::run(volume);
        }
        for part in 0..printed::COUNT {
            printed::run(&patches::Damaged { part, ..damaged.clone() });
        }
    }
}

fn runs() -> u32 {
    std::env::var("XFSINSPECT_PATCHES").ok().map_or(24, |n| n.parse().unwrap())
}

/// Inputs that never end are stopped by the budget of steps, which is small here.
fn each(runs: u32, mut run: impl FnMut(&patches::Damaged)) {
    let mut noise = Noise(7);
    for n in 0..runs {
        for base in 0..patches::BASES as u8 {
            let mut damaged = patches::damaged(&noise.input(base));
            damaged.part = (n + u32::from(base)) as usize;
            run(&damaged);
        }
    }
}

#[test]
fn the_images_are_sound() {
    for n in 0..patches::BASES {
        let base = patches::base(n);
        let report = checked::run(&base.sound);
        let expected = if base.name == "tiny-cut" { Verdict::DirtyLog } else { Verdict::Clean };
        assert_eq!(report.summary.verdict, expected, "{}: {:#?}", base.name, report.findings);
        println!("{}: {} metadata blocks", base.name, base.units.len());
    }
}

#[test]
fn checks_of_damaged_images() {
    let (mut damaged, mut all) = (0, 0);
    each(runs(), |image| {
        let Some(volume) = &image.volume else { return };
        all += 1;
        damaged += u32::from(checked::run(volume).summary.verdict == Verdict::Damaged);
    });
    println!("{damaged} of {all} are called damaged");
    // Otherwise the patches miss.
    assert!(damaged > all / 3, "{damaged} of {all}");
}

#[test]
fn everything_shown_of_damaged_images() {
    each(runs().div_ceil(5), printed::run);
}
