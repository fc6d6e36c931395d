//! The help of the view.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::style::BOLD;

/// Keys and what they do, then columns and what they contain; a line without a name is a title.
const LINES: [(&str, &str); 22] = [
    ("", "Keys"),
    ("↑ ↓ j k", "select a row (PgUp, PgDn, Home, End)"),
    ("Enter", "one flow, or the flows of a host or protocol"),
    ("Esc", "back; no selected row; no condition"),
    ("Tab", "flows, hosts, protocols"),
    ("s r", "sort by the next column; reverse"),
    ("/", "show flows that meet a condition, as --where:"),
    ("", "  conn_state = 'S0' and server_name like '%.org'"),
    ("p", "pause; packets are counted all the same"),
    ("q Ctrl-C", "end the capture"),
    ("", "Columns"),
    ("OUT IN", "sent and received by the initiator, or a host,"),
    ("", "  in bits and packets per second"),
    ("BIT/S", "both directions together"),
    ("PROTO", "application (? by port only), or IP protocol"),
    ("SERVER", "of TLS, QUIC, HTTP; the name queried from DNS"),
    ("STATE", "S0 no reply, S1 established, SF closed,"),
    ("", "  REJ refused, RST… aborted, OTH no handshake"),
    ("RTT", "time of the TCP handshake"),
    ("AGE", "time since the first packet"),
    ("Drops", "!! more than 0.1 % of packets were dropped;"),
    ("", "  ! above a bar of the chart: drops in it"),
];

/// Draws the help.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect) {
    let is_title = |text: &str| !text.starts_with(' ');
    let lines = LINES.map(|(name, text)| match name {
        "" if is_title(text) => Line::styled(text, BOLD),
        _ => Line::from(vec![Span::styled(format!("  {name:<9}"), BOLD), Span::raw(text)]),
    });
    // A screen of a few lines shows the keys.
    frame.render_widget(Paragraph::new(lines.to_vec()), area);
}
