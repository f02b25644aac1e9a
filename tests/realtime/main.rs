//! The realtime section: cases from the field, damage that must be found, and sound images on which nothing is found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../common/mod.rs"]
mod common;

mod cases;
mod damage;
mod flips;
mod mounts;
mod pairing;
mod patch;
mod plans;
mod predicates;
mod rules;
