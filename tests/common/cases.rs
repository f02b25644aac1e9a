//! Images made by a few edits of a base image, as `testimages/hazard/cases` lists them.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex};
use xfsinspect::format::{Field, Structure, agf, agfl, agi, checksum, superblock};
use xfsinspect::hazard::{Asked, Config, Facts, LogState, Same};
use xfsinspect::source::Source;
use xfsinspect::units::ByteOffset;
use xfsinspect::volume::{Choice, Devices, Volume};

const PAGE: usize = 4096;

/// A device of which only the pages that hold something are kept.
#[derive(Clone, Default)]
pub struct Sparse {
    pages: BTreeMap<u64, Vec<u8>>,
    len: u64,
}

impl Sparse {
    /// A device of zeros.
    pub fn zeros(len: u64) -> Self {
        Self { pages: BTreeMap::new(), len }
    }

    /// An image of `testimages/hazard`, unpacked once.
    pub fn base(name: &str) -> Self {
        static BASES: Mutex<BTreeMap<String, Sparse>> = Mutex::new(BTreeMap::new());
        let mut bases = BASES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        bases.entry(name.to_owned()).or_insert_with(|| Self::unpack(name)).clone()
    }

    fn unpack(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testimages/hazard/{name}.img.zst"));
        let file = std::fs::File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut decoder = zstd::stream::read::Decoder::new(file).unwrap();
        decoder.window_log_max(31).unwrap();
        let (mut device, zeros) = (Self::default(), [0u8; PAGE]);
        loop {
            let mut page = Vec::with_capacity(PAGE);
            decoder.by_ref().take(PAGE as u64).read_to_end(&mut page).unwrap();
            if page.is_empty() {
                return device;
            }
            let at = device.len / PAGE as u64;
            device.len += page.len() as u64;
            if page != zeros[..page.len()] {
                page.resize(PAGE, 0);
                device.pages.insert(at, page);
            }
        }
    }

    pub fn get(&self, at: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let mut done = 0;
        while done < length {
            let at = at + done as u64;
            let within = (at % PAGE as u64) as usize;
            let n = (PAGE - within).min(length - done);
            if let Some(page) = self.pages.get(&(at / PAGE as u64)) {
                bytes[done..done + n].copy_from_slice(&page[within..within + n]);
            }
            done += n;
        }
        bytes
    }

    pub fn put(&mut self, at: u64, bytes: &[u8]) {
        for (byte, value) in (at..).zip(bytes) {
            let page = self.pages.entry(byte / PAGE as u64).or_insert_with(|| vec![0; PAGE]);
            page[(byte % PAGE as u64) as usize] = *value;
        }
    }
}

impl Source for Sparse {
    fn len(&self) -> u64 {
        self.len
    }
    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
        if offset.0.checked_add(buf.len() as u64).is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buf.copy_from_slice(&self.get(offset.0, buf.len()));
        Ok(())
    }
}

/// A line of the list.
#[derive(Clone, Debug)]
pub struct Case {
    pub id: String,
    /// The image that fires the row and the one that does not; `Err` has the base of a row that cannot be decided.
    pub images: Result<(String, String), String>,
}

/// The list.
pub fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testimages/hazard/cases");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| {
            let parts: Vec<&str> = line.split(" : ").map(str::trim).collect();
            let images = match parts[1..] {
                [unseen] => Err(unseen.strip_prefix("unseen ").expect(line).to_owned()),
                [fires, not] => Ok((fires.to_owned(), not.to_owned())),
                _ => panic!("{line}"),
            };
            Case { id: parts[0].to_owned(), images }
        })
        .collect()
}

/// An image of the list with what the question adds.
pub struct Made {
    pub data: Sparse,
    pub rt: Option<u64>,
    pub log: Option<u64>,
    pub sector: Option<u32>,
    pub state: LogState,
    pub config: Option<Config>,
    pub same: Same,
    pub mounted: bool,
    pub rt_sector: Option<u32>,
    pub log_sector: Option<u32>,
}

pub fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

/// Byte of a header, its fields and the byte of its checksum.
fn header(data: &Sparse, name: &str) -> (u64, &'static [Field], usize) {
    let (kind, ag) = name.split_at(name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len()));
    let ag = if ag.is_empty() { 0 } else { number(ag) };
    let be = |at, n| data.get(at, n).iter().fold(0u64, |value, b| value << 8 | u64::from(*b));
    let (block, agblocks, sector) = (be(4, 4), be(84, 4), be(102, 2));
    let start = ag * agblocks * block;
    match kind {
        "sb" => (start, superblock::Superblock::FIELDS, superblock::CRC_OFFSET),
        "agf" => (start + sector, agf::Agf::FIELDS, agf::CRC_OFFSET),
        "agi" => (start + 2 * sector, agi::Agi::FIELDS, agi::CRC_OFFSET),
        "agfl" => (start + 3 * sector, agfl::Agfl::FIELDS, agfl::CRC_OFFSET),
        other => panic!("{other}"),
    }
}

/// Makes an image from its line.
pub fn make(line: &str) -> Made {
    let mut words = line.split_whitespace();
    let base = Sparse::base(words.next().unwrap());
    let mut made = Made {
        data: base.clone(),
        rt: None,
        log: None,
        sector: None,
        state: LogState::Unknown,
        config: None,
        same: Same::default(),
        mounted: false,
        rt_sector: None,
        log_sector: None,
    };
    let mut mend: Vec<(u64, usize)> = Vec::new();
    let mut keep_crc = false;
    for word in words {
        let (left, right) = word.split_once('=').unwrap_or((word, ""));
        match left {
            "nocrc" => keep_crc = true,
            "rt" => made.rt = Some(number(right)),
            "log" => made.log = Some(number(right)),
            "len" => made.data.len = number(right),
            "same" if right == "log" => made.same.log_data = true,
            "same" => made.same.rt_data = true,
            "mounted" => made.mounted = true,
            "rtsector" => made.rt_sector = Some(number(right) as u32),
            "logsector" => made.log_sector = Some(number(right) as u32),
            "sector" => made.sector = Some(number(right) as u32),
            "state" => made.state = if right == "dirty" { LogState::Dirty } else { LogState::Clean },
            "kconfig" => made.config = Some(Config::parse(&right.replace(',', "\n"), "kconfig").unwrap()),
            _ if left.starts_with("raw@") => {
                let at = number(&left[4..]);
                let bytes: Vec<u8> =
                    (0..right.len()).step_by(2).map(|i| u8::from_str_radix(&right[i..i + 2], 16).unwrap()).collect();
                made.data.put(at, &bytes);
                if at < 512 {
                    mend.push((0, superblock::CRC_OFFSET));
                }
            }
            _ => {
                let (place, how) = match left.strip_suffix(['|', '&']) {
                    Some(place) => (place, left.as_bytes()[left.len() - 1]),
                    None => (left, b'='),
                };
                let (structure, name) = place.split_once('.').unwrap_or_else(|| panic!("{word}"));
                let (at, fields, crc) = header(&base, structure);
                let field = fields
                    .iter()
                    .find(|f| f.name == name || f.kernel_name == name)
                    .unwrap_or_else(|| panic!("{word}: no such field"));
                let (byte, length) = (at + u64::from(field.bit / 8), (field.bits / 8) as usize);
                let old = made.data.get(byte, length).iter().fold(0u64, |value, b| value << 8 | u64::from(*b));
                let value = match how {
                    b'|' => old | number(right),
                    b'&' => old & !number(right.strip_prefix('~').unwrap()),
                    _ => number(right),
                };
                made.data.put(byte, &value.to_be_bytes()[8 - length..]);
                mend.push((at, crc));
            }
        }
    }
    let v5 = base.get(101, 1)[0] & 0xf == 5;
    let sector = usize::from(u16::from_be_bytes(base.get(102, 2).try_into().unwrap()));
    for (at, crc) in mend.into_iter().filter(|_| v5 && !keep_crc) {
        let computed = checksum::compute(&made.data.get(at, sector), crc).unwrap();
        made.data.put(at + crc as u64, &computed.to_le_bytes());
    }
    made
}

impl Made {
    pub fn volume(&self) -> Volume {
        let device = |len: u64| Arc::new(Sparse::zeros(len)) as Arc<dyn Source>;
        let devices = Devices { data: Arc::new(self.data.clone()), log: self.log.map(device), rt: self.rt.map(device) };
        Volume::open(devices, Choice::default()).unwrap_or_else(|e| panic!("{e:?}"))
    }

    pub fn facts(&self) -> Facts {
        let asked = Asked { logical_sector: self.sector, log: self.state, headers: true };
        let mut facts = Facts::new(&self.volume(), asked);
        facts.same = self.same;
        facts.mounted_uuids.extend(self.mounted.then_some(facts.sb.uuid));
        facts.rt_sector = self.rt_sector.or(facts.rt_sector);
        facts.log_sector = self.log_sector.or(facts.log_sector);
        facts
    }
}
