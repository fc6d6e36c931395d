//! NTLM, inside of other protocols: who logs on to which server, from the three messages of an authentication.
//!
//! A parser calls `read` with each token of its authentication. The row [`Authentication`] is reported with the last message
//! of the client, or, if there is none, at the end of the flow. Responses to challenges, which serve to guess passwords, are not kept.
//!
//! Standard: [MS-NLMP] section 2.2.

use crate::session::Role;
use crate::session::Text;
use crate::session::kit::{Kept, Open, Reply, Rows, Stored, exchange, names};

names! {
    /// Version of the response to the challenge; 1 also for that of LAN Manager.
    pub struct ResponseVersion: u8 { 0 => "anonymous", 1 => "ntlm_v1", 2 => "ntlm_v2" }
}

exchange! {
    /// An authentication with NTLM.
    "ntlm" pub struct Authentication {
        /// Name of the user.
        pub user_name: Option<Kept<256>>,
        /// Domain of the user.
        pub user_domain: Option<Kept<256>>,
        /// Name of the client's host.
        pub client_host: Option<Kept<48>>,
        /// NetBIOS name of the server's host.
        pub server_host: Option<Kept<48>>,
        /// NetBIOS name of the server's domain.
        pub server_domain: Option<Kept<48>>,
        /// DNS name of the server's host.
        pub server_dns_host: Option<Kept<256>>,
        /// DNS name of the server's domain.
        pub server_dns_domain: Option<Kept<256>>,
        /// DNS name of the server's forest.
        pub server_dns_forest: Option<Kept<256>>,
        /// Version of Windows on the server: major and minor version, and build.
        pub server_version: Option<Kept<16>>,
        /// Version of the response; version 1 is easy to break.
        pub response_version: Option<ResponseVersion>,
        /// True if the server accepts the user; null if the protocol does not say it in the clear.
        pub is_accepted: Option<bool>,
    }
    /// Authentications of NTLM.
    zeek "ntlm" ['a] as row {
        /// `user_name`.
        "username": Option<Text<'a>> = text(&row.user_name);
        /// `client_host`.
        "hostname": Option<Text<'a>> = text(&row.client_host);
        /// `user_domain`.
        "domainname": Option<Text<'a>> = text(&row.user_domain);
        /// `server_host`.
        "server_nb_computer_name": Option<Text<'a>> = text(&row.server_host);
        /// `server_dns_host`.
        "server_dns_computer_name": Option<Text<'a>> = text(&row.server_dns_host);
        /// `server_dns_forest`.
        "server_tree_name": Option<Text<'a>> = text(&row.server_dns_forest);
        /// `is_accepted`.
        "success": Option<bool> = row.is_accepted;
    }
}

fn text<const N: usize>(kept: &Option<Kept<N>>) -> Option<Text<'_>> {
    kept.as_ref().map(Kept::text).filter(|text| !text.0.is_empty())
}

const SIGNATURE: &[u8] = b"NTLMSSP\0";

/// Number of octets of a token in which the message is searched for.
const SEARCH_LEN: usize = 256;

/// Adds the message of NTLM in a token, which may be wrapped in SPNEGO, to the row with this key. The last one of the client ends
/// the row, unless [`result`] follows. With a result, returns the user that it states, with the domain.
pub(super) fn read<R: Open + Stored<Authentication>>(
    token: &[u8],
    key: u64,
    has_result: bool,
    rows: &mut Rows<'_, R>,
) -> Option<Kept<256>> {
    let message = message(token)?;
    match (message.u32(8)?, rows.from()) {
        (1, Role::Client) => rows.request(key, |_: &mut Authentication| {}),
        (2, Role::Server) => rows.response(key, |row: &mut Authentication| {
            row.challenge(message);
            Reply::More
        }),
        (3, Role::Client) => {
            // The client continues the row that waits for the server.
            let mut user = None;
            rows.acts_as(Role::Server);
            rows.response(key, |row: &mut Authentication| {
                row.authenticate(message);
                user = has_result.then(|| row.user());
                if has_result { Reply::More } else { Reply::Last }
            });
            rows.acts_as(Role::Client);
            return user;
        }
        _ => {}
    }
    None
}

/// Returns what the last message of a client states, if a token has it.
pub(super) fn authenticated(token: &[u8]) -> Option<Authentication> {
    let message = message(token).filter(|message| message.u32(8) == Some(3))?;
    let mut row = Authentication::default();
    row.authenticate(message);
    Some(row)
}

/// Returns whether a token is the first one of a client.
pub(super) fn is_first(token: &[u8]) -> bool {
    message(token).is_some_and(|message| message.u32(8) == Some(1))
}

/// Finds a message in a token, which may be wrapped in SPNEGO.
fn message(token: &[u8]) -> Option<Message<'_>> {
    let head = token.get(..SEARCH_LEN).unwrap_or(token);
    let at = head.windows(SIGNATURE.len()).position(|window| window == SIGNATURE)?;
    token.get(at..).map(Message)
}

/// Ends the row with this key with the answer of the server.
pub(super) fn result<R: Open + Stored<Authentication>>(is_accepted: bool, key: u64, rows: &mut Rows<'_, R>) {
    rows.complete(key, |row: &mut Authentication| row.is_accepted = Some(is_accepted));
}

/// A message from its signature on.
#[derive(Clone, Copy)]
struct Message<'m>(&'m [u8]);

impl<'m> Message<'m> {
    fn u32(self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.0.get(at..)?.first_chunk()?))
    }

    fn u16(self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(*self.0.get(at..)?.first_chunk()?))
    }

    /// Returns the value whose length and offset are stated at an offset, as far as it was captured.
    fn value(self, at: usize) -> Option<&'m [u8]> {
        let len = self.u16(at)?;
        let offset = usize::try_from(self.u32(at + 4)?).ok()?;
        let rest = self.0.get(offset..)?;
        Some(rest.get(..len.into()).unwrap_or(rest))
    }

    fn text<const N: usize>(self, at: usize, is_unicode: bool) -> Option<Kept<N>> {
        let octets = self.value(at)?;
        Some(if is_unicode { Kept::of_utf16(octets) } else { Kept::new(octets) })
    }

    /// Returns the version of Windows at an offset: two octets, and a build in two.
    fn version(self, at: usize) -> Option<Kept<16>> {
        match self.0.get(at..at + 4)? {
            [0, 0, 0, 0] => None,
            [major, minor, low, high] => {
                let build = u16::from_le_bytes([*low, *high]);
                Some(Kept::new(format!("{major}.{minor}.{build}").as_bytes()))
            }
            _ => None,
        }
    }
}

/// Flag: texts are in UTF-16.
const UNICODE: u32 = 1;
/// Flag: the message has a version.
const VERSION: u32 = 1 << 25;

impl Authentication {
    /// Returns the user with the domain. Allocates.
    #[must_use]
    pub fn user(&self) -> Kept<256> {
        let [domain, name] = [&self.user_domain, &self.user_name]
            .map(|kept| kept.as_ref().map_or(&[][..], |kept| kept.text().0));
        if domain.is_empty() { Kept::new(name) } else { Kept::new(&[domain, b"\\", name].concat()) }
    }

    /// Reads a CHALLENGE_MESSAGE (section 2.2.1.2).
    fn challenge(&mut self, message: Message<'_>) {
        let flags = message.u32(20).unwrap_or_default();
        self.server_version = message.version(48).filter(|_| flags & VERSION != 0);
        // AV_PAIRs (section 2.2.2.1), at most a few dozens.
        let mut rest = message.value(40).unwrap_or_default();
        for _ in 0..32 {
            let [a, b, c, d, next @ ..] = rest else { return };
            let Some((value, next)) = next.split_at_checked(u16::from_le_bytes([*c, *d]).into()) else {
                return;
            };
            match u16::from_le_bytes([*a, *b]) {
                0 => return,
                1 => self.server_host = Some(Kept::of_utf16(value)),
                2 => self.server_domain = Some(Kept::of_utf16(value)),
                3 => self.server_dns_host = Some(Kept::of_utf16(value)),
                4 => self.server_dns_domain = Some(Kept::of_utf16(value)),
                5 => self.server_dns_forest = Some(Kept::of_utf16(value)),
                _ => {}
            }
            rest = next;
        }
    }

    /// Reads an AUTHENTICATE_MESSAGE (section 2.2.1.3).
    fn authenticate(&mut self, message: Message<'_>) {
        let is_unicode = message.u32(60).is_none_or(|flags| flags & UNICODE != 0);
        self.user_domain = message.text(28, is_unicode);
        self.user_name = message.text(36, is_unicode);
        self.client_host = message.text(44, is_unicode);
        // The lengths of both responses are stated, whether their octets were captured or not.
        let [older_len, len] = [12, 20].map(|at| message.u16(at));
        self.response_version = len.map(|len| {
            ResponseVersion(match (len, older_len) {
                (0, Some(24..)) | (24, _) => 1,
                (0, _) => 0,
                _ => 2,
            })
        });
    }
}
