//! One flow, with its latest messages.

use std::time::Duration;

use flowgauge::export::human::{count, duration, octets};
use flowgauge::record::SideRecord;
use flowgauge::row::Value;
use flowgauge::{ConnState, EndReason, FlowRecord, IpProtocol};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::messages;
use super::super::model::{FlowRow, ShownFlow};
use super::super::traffic::Volume;
use super::style::BOLD;
use super::table::{endpoint, state_style};
use super::text::{age, printable, short_rate, split, width};
use crate::human::{plural, time_of_day};

/// Columns before the facts.
const NAME_WIDTH: usize = 7;

/// Lines for messages that are preferred to the last facts, and their title.
const MESSAGES_HEIGHT: u16 = 8;

/// Maximum number of lines of a message.
const MESSAGE_HEIGHT_MAX: usize = 4;

/// Draws a flow, and the messages before the last `scroll` ones.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    (shown, interval): (&ShownFlow, Duration),
    scroll: usize,
    area: Rect,
) {
    let columns = usize::from(area.width);
    let facts = facts(shown, interval, columns);
    let facts_height = u16::try_from(facts.len()).unwrap_or(u16::MAX);
    let facts_height = facts_height.min((area.height / 2).max(area.height.saturating_sub(MESSAGES_HEIGHT)));
    let areas =
        Layout::vertical([Constraint::Length(facts_height), Constraint::Length(1), Constraint::Min(1)]);
    let [top, title, bottom] = areas.areas(area);
    frame.render_widget(Paragraph::new(facts), top);
    let behind = if scroll > 0 { format!(", {scroll} more below") } else { String::new() };
    let text = format!("── {}{behind} ", plural(shown.lines.iter().len() as u64, "message"));
    let rule = "─".repeat(columns.saturating_sub(width(&text)));
    frame.render_widget(Paragraph::new(format!("{text}{rule}")).style(BOLD), title);
    frame.render_widget(Paragraph::new(messages(shown, scroll, bottom)), bottom);
}

/// Returns the lines of the messages that fit, the latest one last.
fn messages(shown: &ShownFlow, scroll: usize, area: Rect) -> Vec<Line<'static>> {
    let (columns, height) = (usize::from(area.width), usize::from(area.height));
    if shown.lines.iter().len() == 0 {
        return vec![Line::raw("No message of an application protocol was seen or kept.")];
    }
    let mut lines = Vec::new();
    for message in shown.lines.iter().rev().skip(scroll) {
        let mut block = message_lines(message, &shown.row.record, columns);
        if lines.len() + block.len() > height && !lines.is_empty() {
            break;
        }
        block.reverse();
        lines.extend(block);
    }
    lines.reverse();
    lines
}

fn message_lines(message: &messages::Line, record: &FlowRecord, columns: usize) -> Vec<Line<'static>> {
    let (arrow, color) =
        if message.side == record.initiator { ("→", Color::Cyan) } else { ("←", Color::Green) };
    let time = time_of_day(message.timestamp);
    // On a narrow screen, the time is a line of its own.
    let is_narrow = columns < 60;
    let head = format!("{time} {arrow} ");
    let indent = if is_narrow { 2 } else { width(&head) };
    let parts = split(&message.text, columns.saturating_sub(indent), MESSAGE_HEIGHT_MAX);
    let head = Span::styled(head, Style::new().fg(color));
    let mut lines = Vec::new();
    let mut parts = parts.into_iter();
    lines.push(if is_narrow {
        Line::from(head)
    } else {
        Line::from(vec![head, Span::raw(parts.next().unwrap_or_default())])
    });
    lines.extend(parts.map(|part| Line::raw(format!("{}{part}", " ".repeat(indent)))));
    lines
}

/// Returns the lines of all facts, in groups.
fn facts(shown: &ShownFlow, interval: Duration, columns: usize) -> Vec<Line<'static>> {
    let ShownFlow { row, end_reason, .. } = shown;
    let FlowRow { record, activity, .. } = row;
    let ends = [record.initiator, record.initiator.other()].map(|side| endpoint(&record.key, side));
    let [source, destination] = ends;
    let mut identity = vec![row.protocol(), source, format!("→ {destination}")];
    identity.extend(row.name.as_deref().map(printable));
    let mut lines = group("Flow", &identity, columns);
    if let Some(first) = lines.first_mut() {
        *first = first.clone().style(BOLD);
    }
    lines.extend(grid(
        [
            ("Out", &record.forward, activity.recent.sent, Color::Cyan),
            ("In", &record.reverse, activity.recent.received, Color::Green),
        ],
        interval,
        columns,
    ));
    let state = record.conn_state;
    let mut states = vec![match meaning(record) {
        Some(meaning) => format!("{} {meaning}", state.name()),
        None => state.name().to_owned(),
    }];
    if record.protocol() == IpProtocol::TCP {
        states.push(format!("history {}", record.history));
    }
    states.extend(record.handshake_rtt.map(|rtt| format!("RTT {}", duration(rtt))));
    states.extend(record.icmp.map(|(kind, code)| format!("type {kind}, code {code}")));
    states.extend(nonzero(record.icmp_error_count, "ICMP error"));
    states.push(format!("initiator by {}", record.direction_evidence.name()));
    lines.extend(group("State", &states, columns).into_iter().map(|line| line.style(state_style(state))));
    let mut times = vec![
        format!("began {} UTC", time_of_day(record.start)),
        format!("last packet {} UTC", time_of_day(record.end)),
    ];
    times.push(match end_reason {
        None => format!("age {}", age(row.age)),
        Some(reason) => format!("ended ({})", end(*reason)),
    });
    lines.extend(group("Time", &times, columns));
    let mut origin = vec![format!("interface {}", record.interface)];
    origin.extend(nonzero(record.fragment_count, "fragment"));
    origin.push(record.community_id().to_string());
    lines.extend(group("Origin", &origin, columns));
    lines
}

/// Returns the text of a count with its noun, unless it is zero.
fn nonzero(number: u32, one: &str) -> Option<String> {
    (number > 0).then(|| plural(number.into(), one))
}

const fn end(reason: EndReason) -> &'static str {
    match reason {
        EndReason::IdleTimeout => "idle timeout",
        EndReason::ActiveTimeout => "active timeout",
        EndReason::EndOfFlow => "closed",
        EndReason::ForcedEnd => "end of the capture",
        EndReason::LackOfResources => "evicted",
        _ => "other reason",
    }
}

/// Explains the connection state; `None` for protocols without connections.
fn meaning(record: &FlowRecord) -> Option<&'static str> {
    let text = match (record.protocol(), record.conn_state) {
        (IpProtocol::UDP, ConnState::Sf) => "(packets in both directions)",
        (IpProtocol::UDP, ConnState::S0) => "(no reply)",
        (IpProtocol::UDP, ConnState::Shr) => "(only replies)",
        (IpProtocol::TCP, state) => match state {
            ConnState::S0 => "(SYN without a reply)",
            ConnState::S1 => "(established)",
            ConnState::S2 => "(closed by the initiator only)",
            ConnState::S3 => "(closed by the responder only)",
            ConnState::Sf => "(closed by both ends)",
            ConnState::Rej => "(refused)",
            ConnState::Rsto => "(aborted by the initiator)",
            ConnState::Rstr => "(aborted by the responder)",
            ConnState::Rstos0 => "(SYN, then RST)",
            ConnState::Rstrh => "(SYN-ACK, then RST)",
            ConnState::Sh => "(SYN, then FIN)",
            ConnState::Shr => "(SYN-ACK, then FIN)",
            ConnState::Oth => "(no handshake was seen)",
            _ => return None,
        },
        _ => return None,
    };
    Some(text)
}

/// Returns the lines of a group of facts, which are separated by commas.
fn group(name: &'static str, facts: &[String], columns: usize) -> Vec<Line<'static>> {
    let mut texts: Vec<String> = Vec::new();
    let available = columns.saturating_sub(NAME_WIDTH);
    for fact in facts {
        match texts.last_mut() {
            Some(text) if width(text) + 2 + width(fact) <= available => {
                text.push_str("  ");
                text.push_str(fact);
            }
            _ => texts.extend(split(fact, available, 3)),
        }
    }
    let line = |(index, text): (usize, String)| {
        let name = if index == 0 { name } else { "" };
        Line::from(vec![Span::styled(format!("{name:<NAME_WIDTH$}"), BOLD), Span::raw(text)])
    };
    texts.into_iter().enumerate().map(line).collect()
}

/// A direction of a flow: its name, counts, the traffic of the last interval, and a color.
type Direction<'r> = (&'static str, &'r SideRecord, Volume, Color);

/// Returns a table with a line for each direction, with the columns that fit.
fn grid(directions: [Direction<'_>; 2], interval: Duration, columns: usize) -> Vec<Line<'static>> {
    const TITLES: [(&str, usize); 11] = [
        ("BIT/S", 6),
        ("PACKET/S", 8),
        ("PACKETS", 7),
        ("OCTETS", 6),
        ("PAYLOAD", 7),
        ("RETRANS", 7),
        ("TTL", 7),
        ("FLAGS", 8),
        ("DSCP", 4),
        ("MAC", 17),
        ("VLAN", 9),
    ];
    let mut available = columns.saturating_sub(NAME_WIDTH);
    let shown_count = TITLES
        .iter()
        .take_while(|(_, width)| {
            let fits = *width < available;
            available = available.saturating_sub(width + 1);
            fits
        })
        .count();
    let line = |name: &str, color: Option<Color>, values: [String; 11]| {
        let cells = TITLES.iter().zip(values).take(shown_count);
        let text: String = cells.map(|((_, width), value)| format!("{value:>width$} ")).collect();
        let style = color.map_or(BOLD, |color| BOLD.fg(color));
        let text_style = if color.is_some() { Style::new() } else { BOLD };
        Line::from(vec![Span::styled(format!("{name:<NAME_WIDTH$}"), style), Span::styled(text, text_style)])
    };
    let titles = line("", None, TITLES.map(|(title, _)| title.to_owned()));
    let rows = directions.map(|(name, side, recent, color)| {
        let hop_limits = side
            .hop_limits
            .map(|(min, max)| if min == max { min.to_string() } else { format!("{min}-{max}") });
        let mac = side.mac.map(|mac| Value::Mac(mac).to_string());
        let values = [
            short_rate(recent.bits_per_second(interval)),
            short_rate(recent.packets_per_second(interval)),
            count(side.counters.packet_count, 100_000),
            octets(side.counters.octet_count),
            octets(side.counters.payload_octet_count),
            count(side.tcp.retransmitted_count.into(), 100_000),
            hop_limits.unwrap_or_default(),
            side.tcp_flags.to_string(),
            side.dscp.map(|dscp| dscp.to_string()).unwrap_or_default(),
            mac.unwrap_or_default(),
            side.vlan_ids.to_string(),
        ];
        line(name, Some(color), values)
    });
    std::iter::once(titles).chain(rows).collect()
}
