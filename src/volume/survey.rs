//! A file system read with patience: a read that fails is tried once more, then piece by piece; what fails all the same is
//! remembered and not asked for again, so that within one run nothing is unreadable now and readable later. The run can be
//! told to stop: then every read fails, and what was not read by then is as unknown as what cannot be read.

use super::{Devices, Volume};
use crate::source::Source;
use crate::units::{ByteOffset, Device};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Why a read was refused: the run was told to stop.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("stopped")]
pub struct Stopped;

/// Was a read refused because the run was told to stop?
pub fn is_stopped(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Stopped>())
}

/// Bytes that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Which device.
    pub device: Device,
    /// First byte.
    pub byte: ByteOffset,
    /// Length in bytes.
    pub length: u64,
    /// What the system said of the first of them.
    pub why: String,
}

/// Failures so far apart count as failures of the device, not of one spot …
const APART: u64 = 1 << 20;
/// … and so many of them, with no success in between, are the end of it …
const GIVE_UP: u32 = 8;
/// … or so many failures of any kind.
const IN_A_ROW: u32 = 256;

/// What became of the reads of one device.
#[derive(Debug, Default)]
struct Record {
    /// End and reason of unreadable ranges by where they begin.
    bad: Mutex<BTreeMap<u64, (u64, String)>>,
    any: AtomicBool,
    stopped: AtomicBool,
    dead: AtomicBool,
    in_a_row: AtomicU32,
    apart: AtomicU32,
    last: AtomicU64,
}

impl Record {
    fn bad(&self) -> MutexGuard<'_, BTreeMap<u64, (u64, String)>> {
        self.bad.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was said of an unreadable range that these bytes touch.
    fn known(&self, offset: u64, length: u64) -> Option<String> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let bad = self.bad();
        let (_, (end, why)) = bad.range(..offset.saturating_add(length)).next_back()?;
        (*end > offset).then(|| why.clone())
    }

    fn failed(&self, offset: u64, length: u64, why: &io::Error) {
        let mut bad = self.bad();
        let (mut start, mut end, mut why) = (offset, offset.saturating_add(length), why.to_string());
        // Ranges that touch are one, with the reason of the first.
        while let Some((&at, (until, _))) = bad.range(..=end).next_back()
            && *until >= start
        {
            let (until, said) = bad.remove(&at).unwrap_or_default();
            if at <= start {
                why = said;
            }
            (start, end) = (start.min(at), end.max(until));
        }
        bad.insert(start, (end, why));
        self.any.store(true, Ordering::Release);
        drop(bad);
        let more = |count: &AtomicU32| count.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let (last, first) = (self.last.load(Ordering::Relaxed), more(&self.in_a_row));
        let apart = first == 1 || last.abs_diff(offset) >= APART;
        if apart {
            self.last.store(offset, Ordering::Relaxed);
        }
        if first >= IN_A_ROW || apart && more(&self.apart) >= GIVE_UP {
            self.dead.store(true, Ordering::Relaxed);
        }
    }
}

/// A device of the file system.
struct Patient {
    inner: Arc<dyn Source>,
    /// Bytes that are asked for alone where more cannot be read.
    unit: u64,
    stop: Arc<AtomicBool>,
    record: Arc<Record>,
}

impl Patient {
    fn refused(&self) -> io::Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            self.record.stopped.store(true, Ordering::Relaxed);
            return Err(io::Error::other(Stopped));
        }
        if self.record.dead.load(Ordering::Relaxed) {
            return Err(io::Error::other("given up: nothing could be read any more"));
        }
        Ok(())
    }

    /// Reads, and where that fails tries once `more`.
    fn ask(&self, offset: u64, buf: &mut [u8], more: bool) -> io::Result<()> {
        let mut asked = self.inner.read_at(ByteOffset(offset), buf);
        if asked.is_err() && more {
            asked = self.refused().and_then(|()| self.inner.read_at(ByteOffset(offset), buf));
        }
        asked.inspect(|()| {
            self.record.in_a_row.store(0, Ordering::Relaxed);
            self.record.apart.store(0, Ordering::Relaxed);
        })
    }

    fn pieces(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let (mut at, mut rest) = (offset, buf);
        let mut result = Ok(());
        while !rest.is_empty() {
            let piece = self.unit.saturating_sub(at.checked_rem(self.unit).unwrap_or(0));
            let piece = usize::try_from(piece).unwrap_or(usize::MAX).min(rest.len());
            let Some((now, later)) = rest.split_at_mut_checked(piece) else { break };
            let length = u64::try_from(piece).unwrap_or(u64::MAX);
            let read = match self.record.known(at, length) {
                Some(why) => Err(io::Error::other(why)),
                None => self.refused().and_then(|()| {
                    // Where the piece before it failed twice, once is enough.
                    self.ask(at, now, result.is_ok()).inspect_err(|why| {
                        if !is_stopped(why) {
                            self.record.failed(at, length, why);
                        }
                    })
                }),
            };
            result = result.and(read);
            (at, rest) = (at.saturating_add(length), later);
        }
        result
    }
}

impl Source for Patient {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
        self.refused()?;
        let length = u64::try_from(buf.len()).unwrap_or(u64::MAX);
        if offset.0.checked_add(length).is_none_or(|end| end > self.inner.len()) {
            // Where a device ends is no fault of it.
            return self.inner.read_at(offset, buf);
        }
        let known = self.record.known(offset.0, length).is_some();
        if !known && (length > self.unit || self.unit == 0) && self.ask(offset.0, buf, true).is_ok() {
            return Ok(());
        }
        self.pieces(offset.0, buf)
    }

    fn read_if_cached(&self, offset: ByteOffset, buf: &mut [u8]) -> bool {
        let length = u64::try_from(buf.len()).unwrap_or(u64::MAX);
        self.refused().is_ok()
            && self.record.known(offset.0, length).is_none()
            && self.inner.read_if_cached(offset, buf)
    }

    fn will_need(&self, offset: ByteOffset, length: u64) {
        if self.refused().is_ok() {
            self.inner.will_need(offset, length);
        }
    }

    fn sector_size(&self) -> u32 {
        self.inner.sector_size()
    }
}

/// What could not be read of the devices of a file system.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    records: Vec<(Device, Arc<Record>)>,
}

impl Survey {
    /// The unreadable ranges, in the order of devices and bytes. Those that touch are one.
    pub fn gaps(&self) -> Vec<Gap> {
        let of = |(device, record): &(Device, Arc<Record>)| {
            let gap = |(&start, (end, why)): (&u64, &(u64, String))| Gap {
                device: *device,
                byte: ByteOffset(start),
                length: end.saturating_sub(start),
                why: why.clone(),
            };
            record.bad().iter().map(gap).collect::<Vec<_>>()
        };
        self.records.iter().flat_map(of).collect()
    }

    /// Devices that were not asked any more, since reads all over them failed one after the other.
    pub fn given_up(&self) -> Vec<Device> {
        self.records.iter().filter(|(_, r)| r.dead.load(Ordering::Relaxed)).map(|(device, _)| *device).collect()
    }

    /// Was a read refused because the run was told to stop?
    pub fn is_stopped(&self) -> bool {
        self.records.iter().any(|(_, record)| record.stopped.load(Ordering::Relaxed))
    }

    /// Was everything read that was asked for?
    pub fn is_whole(&self) -> bool {
        let whole = |record: &Record| !record.any.load(Ordering::Relaxed) && !record.dead.load(Ordering::Relaxed);
        !self.is_stopped() && self.records.iter().all(|(_, record)| whole(record))
    }
}

impl Volume {
    /// The same file system, read with patience; `stop` ends all reading once it is set. What could not be read is told by
    /// the [`Survey`].
    pub fn surveyed(&self, stop: &Arc<AtomicBool>) -> (Self, Survey) {
        let mut survey = Survey::default();
        let mut patient = |device, inner: &Arc<dyn Source>| {
            let record = Arc::new(Record::default());
            survey.records.push((device, Arc::clone(&record)));
            let unit = self.geometry.block_size();
            Arc::new(Patient { inner: Arc::clone(inner), unit, stop: Arc::clone(stop), record }) as Arc<dyn Source>
        };
        let devices = Devices {
            data: patient(Device::Data, &self.devices.data),
            log: self.devices.log.as_ref().map(|log| patient(Device::Log, log)),
            rt: self.devices.rt.as_ref().map(|rt| patient(Device::Rt, rt)),
        };
        (Self { devices, ..self.clone() }, survey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten thousand bytes; reads that touch `bad` fail, the first `passing` reads of others, too.
    struct Disk {
        bad: std::ops::Range<u64>,
        passing: AtomicU32,
        asked: AtomicU32,
    }

    impl Source for Disk {
        fn len(&self) -> u64 {
            10_000
        }
        fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let end = offset.0 + u64::try_from(buf.len()).unwrap_or(0);
            if end > self.len() || offset.0 < self.bad.end && end > self.bad.start {
                return Err(io::Error::other("bad"));
            }
            if self.passing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
                return Err(io::Error::other("passing"));
            }
            buf.fill(7);
            Ok(())
        }
    }

    fn patient(bad: std::ops::Range<u64>, passing: u32) -> (Patient, Arc<Disk>) {
        let disk = Arc::new(Disk { bad, passing: passing.into(), asked: 0.into() });
        let inner = Arc::clone(&disk) as Arc<dyn Source>;
        (Patient { inner, unit: 1000, stop: Arc::default(), record: Arc::default() }, disk)
    }

    #[test]
    fn one_more_try() {
        let (patient, _) = patient(0..0, 1);
        assert!(patient.read_at(ByteOffset(5), &mut [0; 4000]).is_ok());
        assert!(patient.record.bad().is_empty());
    }

    #[test]
    fn a_failed_read_is_narrowed_down_and_not_asked_for_again() {
        let (patient, disk) = patient(4100..4101, 0);
        let mut bytes = [0; 4000];
        assert!(patient.read_at(ByteOffset(2500), &mut bytes).is_err());
        let bad = || patient.record.bad().iter().map(|(start, (end, _))| (*start, *end)).collect::<Vec<_>>();
        assert_eq!(bad(), [(4000, 5000)]);
        assert!(bytes.iter().take(1500).all(|&byte| byte == 7));
        let asked = disk.asked.load(Ordering::Relaxed);
        assert!(patient.read_at(ByteOffset(4200), &mut [0; 10]).is_err());
        assert_eq!(disk.asked.load(Ordering::Relaxed), asked);
        assert!(patient.read_at(ByteOffset(5000), &mut [0; 10]).is_ok());
        // Beyond the end is no gap.
        assert!(patient.read_at(ByteOffset(9999), &mut [0; 2]).is_err());
        assert_eq!(bad(), [(4000, 5000)]);
    }

    #[test]
    fn ranges_that_touch_are_one() {
        let record = Record::default();
        let error = |text: &str| io::Error::other(text.to_owned());
        record.failed(512, 512, &error("b"));
        record.failed(2048, 512, &error("d"));
        record.failed(0, 512, &error("a"));
        record.failed(1024, 1024, &error("c"));
        assert_eq!(record.bad().iter().map(|(a, b)| (*a, b.0, b.1.as_str())).collect::<Vec<_>>(), [(0, 2560, "a")]);
        assert_eq!(record.known(2559, 1).as_deref(), Some("a"));
        assert!(record.known(2560, 512).is_none());
    }

    #[test]
    fn told_to_stop() {
        let (patient, disk) = patient(0..0, 0);
        patient.stop.store(true, Ordering::Relaxed);
        let error = patient.read_at(ByteOffset(0), &mut [0; 8]);
        assert!(error.is_err_and(|error| is_stopped(&error)));
        assert_eq!(disk.asked.load(Ordering::Relaxed), 0);
    }
}
