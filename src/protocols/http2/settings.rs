//! HTTP/2 SETTINGS, and the limits that they set for the other side.

use super::frame;
use super::hpack::{TABLE_LEN_DEFAULT, TABLE_LEN_MAX};
use super::message::Settings;

/// Identifier of SETTINGS_HEADER_TABLE_SIZE.
const HEADER_TABLE_SIZE: u16 = 1;

/// Parses the payload of a SETTINGS frame. If a setting occurs twice, the last one counts.
pub(super) fn read(payload: &[u8]) -> Settings {
    let mut settings = Settings::default();
    for (id, value) in frame::settings(payload) {
        let place = match id {
            HEADER_TABLE_SIZE => &mut settings.header_table_size,
            2 => &mut settings.enable_push,
            3 => &mut settings.max_concurrent_streams,
            4 => &mut settings.initial_window_size,
            5 => &mut settings.max_frame_size,
            6 => &mut settings.max_header_list_size,
            8 => &mut settings.enable_connect_protocol,
            _ => continue,
        };
        *place = Some(value);
    }
    settings
}

/// Maximum size of the HPACK dynamic table that one side's SETTINGS allow the other side to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TableLimit {
    /// The first SETTINGS of the side are still expected.
    #[default]
    NotReceived,
    /// The largest size in octets that the side announced, at least the default. The time at which the other side
    /// received a smaller size is unknown.
    Announced(usize),
    /// Some SETTINGS of the side may not have been captured.
    Unknown,
}

impl TableLimit {
    /// Records the table size in the payload of a SETTINGS frame of the side.
    pub(super) fn announce(&mut self, payload: &[u8]) {
        let known = match *self {
            Self::NotReceived => TABLE_LEN_DEFAULT,
            Self::Announced(len) => len,
            Self::Unknown => return,
        };
        let sizes = frame::settings(payload).filter(|(id, _)| *id == HEADER_TABLE_SIZE);
        let sizes = sizes.map(|(_, size)| usize::try_from(size).unwrap_or(usize::MAX));
        *self = Self::Announced(sizes.fold(known, usize::max));
    }

    /// Returns the maximum size in octets that the other side may set for the dynamic table.
    pub(super) fn len_max(self) -> usize {
        match self {
            Self::Announced(len) => len.min(TABLE_LEN_MAX),
            Self::NotReceived | Self::Unknown => TABLE_LEN_MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_size_applies_after_the_first_settings() {
        let size = |size: u32| [&[0, 1][..], &size.to_be_bytes()].concat();
        let mut limit = TableLimit::default();
        assert_eq!(limit.len_max(), TABLE_LEN_MAX);
        for (payload, len_max) in [
            (vec![0, 3, 0, 0, 0, 100], 4096),
            (size(0), 4096),
            ([size(8192), size(5000)].concat(), 8192),
            (size(4096), 8192),
            (size(u32::MAX), TABLE_LEN_MAX),
        ] {
            limit.announce(&payload);
            assert_eq!(limit.len_max(), len_max, "{payload:?}");
        }
        let mut limit = TableLimit::Unknown;
        limit.announce(&size(4096));
        assert_eq!(limit.len_max(), TABLE_LEN_MAX);
    }
}
