//! Messages of Kerberos in the tokens with which clients of other protocols authenticate (RFC 4121 section 4.1), bare or in SPNEGO.

use super::{Exchange, MessageType, used_ticket};
use crate::codec::ber::Values;
use crate::session::Role;
use crate::session::kit::{Open, Reply, Rows, Stored};

/// First fields of a message with which a ticket is used, before its type (RFC 4120 section 5.5): version 5.
const VERSION: &[u8] = b"\xA0\x03\x02\x01\x05\xA1\x03\x02\x01";

/// Number of octets of a token in which a message is searched for.
const SEARCH_LEN: usize = 256;

/// Types of messages (RFC 4120 section 7.5.7).
const REQUEST: u8 = 14;
const REPLY: u8 = 15;
const ERROR: u8 = 30;

/// Finds a message in a token: its type, and its fields.
fn message_in(token: &[u8]) -> Option<(u8, Values<'_>)> {
    let head = token.get(..SEARCH_LEN).unwrap_or(token);
    let at = head.windows(VERSION.len() + 1).position(|window| window.starts_with(VERSION))?;
    Some((*token.get(at + VERSION.len())?, Values(token.get(at..)?)))
}

/// Returns whether a token uses a ticket.
pub(in super::super) fn is_first(token: &[u8]) -> bool {
    message_in(token).is_some_and(|(kind, _)| kind == REQUEST)
}

/// Returns the name of the service whose ticket a token uses, with its realm.
pub(in super::super) fn service_of(token: &[u8]) -> Option<String> {
    let (REQUEST, fields) = message_in(token)? else { return None };
    let mut row = Exchange::default();
    row.ticket(used_ticket(fields)?);
    let service = row.service_name?.text().to_str_lossy().into_owned();
    Some(match &row.service_realm {
        Some(realm) => format!("{service}@{}", realm.text().to_str_lossy()),
        None => service,
    })
}

/// Adds the message in a token to the row with this key, which the reply of the service ends, unless [`result`] follows.
pub(in super::super) fn read<R>(token: &[u8], key: u64, has_result: bool, rows: &mut Rows<'_, R>)
where
    R: Open + Stored<Exchange>,
{
    let Some((kind, fields)) = message_in(token) else { return };
    match (kind, rows.from()) {
        (REQUEST, Role::Client) => rows.request(key, |row: &mut Exchange| {
            (row.request_type, row.uses_ticket) = (Some(MessageType(kind)), true);
            used_ticket(fields).into_iter().for_each(|ticket| row.ticket(ticket));
        }),
        // With three messages, the last one is a reply of the client (RFC 4757 section 7.1).
        (REPLY | ERROR, Role::Server) => rows.response(key, |row: &mut Exchange| {
            (row.reply_type, row.uses_ticket) = (Some(MessageType(kind)), true);
            if kind == ERROR {
                row.failure(fields);
            }
            if has_result { Reply::More } else { Reply::Last }
        }),
        _ => {}
    }
}

/// Ends the row with this key with the answer of the server.
pub(in super::super) fn result<R>(is_accepted: bool, key: u64, rows: &mut Rows<'_, R>)
where
    R: Open + Stored<Exchange>,
{
    rows.complete(key, |row: &mut Exchange| row.is_accepted = Some(is_accepted));
}
