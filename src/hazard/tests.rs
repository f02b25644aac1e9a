use super::kernel::{by, since, v};
use super::*;

const FIX: Effect = danger(v(3, 8), v(5, 10), "breaks").fixed(&[since(5, 4, 73), by(4, 19, 222)]);
const CHECK: Effect = refuse(v(6, 5), kernel::NEVER, "refused").also(&[since(6, 1, 112)]);

fn at(text: &str) -> Version {
    Kernel::parse(text).expect("a version").version
}

#[test]
fn ranges_and_the_stable_releases_that_stand_out() {
    for (version, covered) in [
        ("3.7", false),
        ("3.8", true),
        ("5.4", true),
        ("5.4.72", true),
        ("5.4.73", false),
        ("5.9.99", true),
        ("5.10", false),
    ] {
        assert_eq!(FIX.covers(at(version)), covered, "{version}");
    }
    for (version, covered) in [("6.1", false), ("6.1.111", false), ("6.1.112", true), ("6.4.9", false), ("6.5", true)] {
        assert_eq!(CHECK.covers(at(version)), covered, "{version}");
    }
}

#[test]
fn remarks_name_the_stable_release_or_say_that_it_is_unknown() {
    assert_eq!(FIX.remark(at("5.4")).as_deref(), Some("no longer from 5.4.73 on"));
    assert_eq!(FIX.remark(at("5.9")), None);
    let unknown = "no longer in later stable releases of 4.19, number unknown (4.19.222 at the latest)";
    assert_eq!(FIX.remark(at("4.19.40")).as_deref(), Some(unknown));
    assert_eq!(CHECK.remark(at("6.1")).as_deref(), Some("also from 6.1.112 on"));
    assert_eq!(FIX.range(), "3.8 to before 5.10 (not from 5.4.73, 4.19.222 or earlier on)");
    assert_eq!(CHECK.range(), "6.5 and later (also from 6.1.112 on)");
}

#[test]
fn rows_are_found_by_id_and_by_reference() {
    assert_eq!(row("rt-bitmap-end-scan").map(|r| r.id), Some("rt-bitmap-end-scan"));
    assert_eq!(row("p1").map(|r| r.id), Some("rt-bitmap-end-scan"));
    assert_eq!(row("RT-09").map(|r| r.id), Some("rt-geometry-mismatch"));
    assert!(row("").is_none() && row("P").is_none());
}
