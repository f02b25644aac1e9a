//! P8: the blocks that recovery of a dirty log would look up.

use super::Reader;
use crate::format::log_item::LogItem;
use crate::units::LogBlock;
use crate::walk::log;

impl Reader<'_> {
    /// Looks for items of blocks outside the AGs that the superblock knows.
    pub(super) fn journal(&mut self) {
        let volume = self.volume;
        let state = log::state(volume);
        let Some(area) = state.area else {
            self.deep.log_unread = Some("where the log lies is not known".into());
            return;
        };
        let recovery = match log::verify(volume, &state) {
            Ok(Some(recovery)) => recovery,
            Ok(None) => {
                self.deep.log_unread = match &state.state {
                    log::State::Unknown(why) => Some(why.to_string()),
                    _ => None,
                };
                return;
            }
            Err(why) => {
                self.deep.log_unread = Some(why.to_string());
                return;
            }
        };
        let sb = volume.superblock();
        let (agblocks, agcount) = (u64::from(sb.agblocks), u64::from(sb.agcount.0));
        // Sectors of 512 bytes to blocks.
        let shift = u32::from(sb.blocklog).saturating_sub(9);
        let met = &mut self.deep.log_outside;
        let mut item = |at: LogBlock, item: LogItem| {
            let (what, daddr) = match item {
                LogItem::Buffer { daddr, .. } => ("a buffer".to_owned(), daddr.0),
                LogItem::Inode { ino, daddr, .. } => (format!("inode {ino}"), daddr.0),
                LogItem::Dquot { id, daddr, .. } => (format!("quota record {id}"), daddr.0),
                LogItem::NewInodes { ag, block, .. } => {
                    let first = u64::from(ag.0).saturating_mul(agblocks).saturating_add(u64::from(block.0));
                    ("new inodes".to_owned(), first.checked_shl(shift).unwrap_or(u64::MAX))
                }
                LogItem::Intent(_) | LogItem::Unknown(_) => return,
            };
            let block = daddr.checked_shr(shift).unwrap_or(0);
            let ag = block.checked_div(agblocks).unwrap_or(u64::MAX);
            if ag < agcount {
                return;
            }
            met.at(|| area.place(at), || {
                format!(
                    "{what} at sector {daddr}: sector >> {shift} = block {block}, / {agblocks} = AG {ag}: no such AG, there are \
                     {agcount}; recovery looks it up"
                )
            });
        };
        match log::items(volume, &state, &recovery, &mut item) {
            Ok(None) => {}
            Ok(Some((at, why))) => {
                self.deep.log_unread =
                    Some(format!("recovery fails at log block {at} ({why}); what follows was not looked at"));
            }
            Err(why) => self.deep.log_unread = Some(why.to_string()),
        }
    }
}
