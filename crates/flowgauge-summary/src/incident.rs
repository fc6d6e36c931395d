//! Incidents that a message shows: weak authentication, SMB 1, shares and services of administrators, poor media.

use flowgauge::protocols::{dcerpc, kerberos, ntlm, rtp, smb};
use flowgauge::session::kit::KitMessage;
use serde::{Deserialize, Serialize};

/// Kinds of incidents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum IncidentKind {
    /// A logon with version 1 of the response of NTLM.
    NtlmV1,
    /// A ticket without pre-authentication: whoever asks for it may guess the password of the user.
    NoPreauthentication,
    /// A ticket for a service with weak encryption: whoever has it may guess the password of the service.
    WeakTicket,
    /// A connection of SMB 1.
    Smb1,
    /// A connection to a share of administrators.
    AdminShare,
    /// A service that is created on another host.
    RemoteService,
    /// A stream of voice or video that listeners understand badly.
    PoorMedia,
}

/// Numbers of the replies of Kerberos (RFC 4120 section 7.5.7).
const AS_REPLY: u8 = 11;
const TGS_REPLY: u8 = 13;

/// Names of pre-authentication data that prove knowledge of a key.
const PROOFS: [&str; 7] =
    ["enc_timestamp", "pk_as_req", "pk_as_req_old", "fx_fast", "encrypted_challenge", "otp_request", "spake"];

impl IncidentKind {
    /// Returns the incident that a message shows, and whom or what it concerns.
    pub(crate) fn of(message: &KitMessage<'_>) -> Option<(Self, String)> {
        if let Some(logon) = message.get::<ntlm::Authentication>() {
            return (logon.response_version?.name()? == "ntlm_v1")
                .then(|| (Self::NtlmV1, logon.user().text().to_str_lossy().into_owned()));
        }
        if let Some(exchange) = message.get::<kerberos::Exchange>() {
            return ticket(exchange);
        }
        if let Some(connection) = message.get::<smb::Connection>() {
            let is_first = connection.dialect?.name()? == "NT LM 0.12";
            return is_first.then(|| (Self::Smb1, String::new()));
        }
        if let Some(exchange) = message.get::<smb::Exchange>() {
            let is_connection = matches!(exchange.command.name()?, "tree_connect" | "smb1_tree_connect_andx");
            if !is_connection || exchange.result?.0 != 0 {
                return None;
            }
            let share = exchange.share.as_ref()?.text().to_str_lossy().into_owned();
            return is_of_administrators(&share).then_some((Self::AdminShare, share));
        }
        if let Some(stream) = message.get::<rtp::Stream>() {
            return media(stream);
        }
        let call = message.get::<dcerpc::Call>()?;
        let operation = call.operation.as_ref()?.text().to_str_lossy().into_owned();
        operation.starts_with("CreateService").then_some((Self::RemoteService, operation))
    }

    /// Returns the name of what happened, and what distinguishes it.
    pub(crate) const fn text(self) -> (&'static str, &'static str) {
        match self {
            Self::NtlmV1 => ("logon", "with version 1 of NTLM"),
            Self::NoPreauthentication => ("ticket", "without pre-authentication"),
            Self::WeakTicket => ("ticket", "with weak encryption for a service"),
            Self::Smb1 => ("connection", "of version 1"),
            Self::AdminShare => ("connection", "to a share of administrators"),
            Self::RemoteService => ("request", "to create a service"),
            Self::PoorMedia => ("stream", "of poor quality"),
        }
    }

    /// Returns the condition on the transactions that show it.
    pub(crate) const fn condition(self) -> &'static str {
        match self {
            Self::NtlmV1 => "response_version = 'ntlm_v1'",
            Self::NoPreauthentication => "reply_type = 'as_reply'",
            Self::WeakTicket => "reply_type = 'tgs_reply'",
            Self::Smb1 => "dialect = 'NT LM 0.12'",
            Self::AdminShare => "command ILIKE '%tree_connect%'",
            Self::RemoteService => "operation ILIKE 'CreateService%'",
            Self::PoorMedia => "opinion_score < 3.6 or lost_count * 20 > packet_count",
        }
    }
}

/// Packets from which on the quality of a stream is judged.
const MEDIA_PACKETS_MIN: u64 = 25;

/// Returns the incident of a stream that many users would be dissatisfied with (G.107 annex B), or that lost a twentieth.
fn media(stream: &rtp::Stream) -> Option<(IncidentKind, String)> {
    let expected = stream.packet_count + stream.lost_count;
    let is_poor = stream.opinion_score.is_some_and(|score| score < 3.6)
        || stream.lost_count.saturating_mul(20) > stream.packet_count;
    if expected < MEDIA_PACKETS_MIN || !is_poor {
        return None;
    }
    let sender = if stream.is_from_client { "source" } else { "destination" };
    let mut what = format!("{} of {expected} packets of the {sender} lost", stream.lost_count);
    if let Some(score) = stream.opinion_score {
        what.push_str(&format!(", score {score}"));
    }
    Some((IncidentKind::PoorMedia, what))
}

/// Returns the incident of a ticket that was granted.
fn ticket(exchange: &kerberos::Exchange) -> Option<(IncidentKind, String)> {
    match exchange.reply_type?.0 {
        AS_REPLY if exchange.request_type.is_some() => {
            let has_proof = exchange.preauthentication.iter().any(|kind| {
                let kind = kind.to_string();
                PROOFS.contains(&kind.as_str())
            });
            let client = exchange.client_name.as_ref()?.text().to_str_lossy().into_owned();
            (!has_proof).then_some((IncidentKind::NoPreauthentication, client))
        }
        TGS_REPLY => {
            let service = exchange.service_name.as_ref()?.text().to_str_lossy().into_owned();
            let is_weak = exchange.ticket_encryption?.is_weak() && !service.starts_with("krbtgt/");
            is_weak.then_some((IncidentKind::WeakTicket, service))
        }
        _ => None,
    }
}

/// Returns whether a share is one of those that only administrators may use: `ADMIN$`, or that of a drive.
fn is_of_administrators(path: &str) -> bool {
    let name = path.rsplit('\\').next().unwrap_or_default();
    name.eq_ignore_ascii_case("ADMIN$")
        || matches!(name.as_bytes(), [letter, b'$'] if letter.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_administrators_are_known_by_their_names() {
        for name in ["ADMIN$", "admin$", "C$", "d$"] {
            assert!(is_of_administrators(&format!(r"\\files\{name}")), "{name}");
        }
        for name in ["IPC$", "data", "CC$", "$", "print$", ""] {
            assert!(!is_of_administrators(&format!(r"\\files\{name}")), "{name}");
        }
    }
}
