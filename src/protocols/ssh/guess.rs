//! What the lengths of encrypted segments say about the authentication, as Zeek infers it.
//!
//! The first answer of the server accepts the service (RFC 4253 section 10), whose content has 17 octets. One that is 16 octets
//! shorter is SSH_MSG_USERAUTH_SUCCESS, which has a single octet (RFC 4252 section 5.1). Each refusal of a connection has the same
//! length, and a banner is much longer (section 5.4).

use crate::checkpoint::state;

/// Number of octets by which the answer to a service request is longer than the success of an authentication.
const SUCCESS_SHORTER: usize = 16;

/// Number of octets by which a banner is longer than the answer to a service request, at least.
const BANNER_LONGER: usize = 256;

/// Least number of octets of an encrypted packet: a block, and the shortest authentication of it (`umac-64@openssh.com`).
const PACKET_LEN_MIN: usize = 24;

/// Number of segments of the server that are looked at.
const SEGMENT_MAX: u8 = 32;

/// What was seen of an authentication.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Guess {
    has_client_sent: bool,
    has_banner: bool,
    segment_count: u8,
    /// Lengths of the answer to the service request, and of a refusal, in octets; zero before.
    service_len: u32,
    refusal_len: u32,
}

state! { struct Guess { has_client_sent, has_banner, segment_count, service_len, refusal_len } }

impl Guess {
    /// Notes a segment of the client. What the server sends before is no answer, such as the list of its extensions.
    pub(super) const fn client_sent(&mut self) {
        self.has_client_sent = true;
    }

    /// Looks at no further segments.
    pub(super) const fn stop(&mut self) {
        self.segment_count = SEGMENT_MAX;
    }

    /// Returns whether further segments are of no interest.
    pub(super) const fn is_over(&self) -> bool {
        self.segment_count >= SEGMENT_MAX
    }

    /// Returns whether a segment of the server accepts or refuses the user; `None` if it says neither.
    pub(super) fn server_sent(&mut self, len: usize) -> Option<bool> {
        self.segment_count = self.segment_count.saturating_add(1);
        if !self.has_client_sent || len < PACKET_LEN_MIN {
            return None;
        }
        let short_len = u32::try_from(len).unwrap_or(u32::MAX);
        let (service_len, refusal_len) = (self.service_len as usize, self.refusal_len as usize);
        if service_len == 0 {
            self.service_len = short_len;
            return None;
        }
        if len == refusal_len {
            return Some(false);
        }
        if len + SUCCESS_SHORTER == service_len {
            return Some(true);
        }
        if refusal_len == 0 {
            if !self.has_banner && len > service_len + BANNER_LONGER {
                self.has_banner = true;
            } else {
                // The first refusal answers the question for the methods.
                self.refusal_len = short_len;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what segments of the server with these lengths say, after one of the client.
    fn answers(lens: &[usize]) -> Vec<bool> {
        let mut guess = Guess::default();
        guess.client_sent();
        lens.iter().filter_map(|len| guess.server_sent(*len)).collect()
    }

    #[test]
    fn refusals_have_one_length_and_a_success_is_short() {
        assert_eq!(answers(&[44, 28]), [true]);
        assert_eq!(answers(&[44, 60, 28]), [true]);
        assert_eq!(answers(&[44, 60, 60, 60, 28]), [false, false, true]);
        assert_eq!(answers(&[44, 1000, 60, 60]), [false]);
        assert_eq!(answers(&[44, 60, 100, 61]), [true; 0]);
        assert_eq!(answers(&[1; 40]), [true; 0], "parts of packets");
        // What the server sends first does not answer the client.
        let mut guess = Guess::default();
        assert_eq!(guess.server_sent(300), None);
        guess.client_sent();
        assert_eq!((guess.server_sent(44), guess.server_sent(28)), (None, Some(true)));
        (2..32).for_each(|_| assert_eq!(guess.server_sent(if guess.is_over() { 0 } else { 20 }), None));
        assert!(guess.is_over());
    }
}
