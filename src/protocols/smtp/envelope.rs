//! Properties of an SMTP mail that are kept until the reply to its content.

use super::message::{Content, ContentGap, Mail, Recipient, is_success};
use super::{ADDRESS_LEN_MAX, RECIPIENT_COUNT_MAX};
use crate::checkpoint::state;
use crate::session::Text;

/// Properties of a mail that its MAIL command begins.
#[derive(Debug)]
pub(super) struct Envelope {
    pub(super) mail: u64,
    sender: Vec<u8>,
    size: Option<u64>,
    recipients: Vec<Recipient>,
    /// Total length in octets of the addresses in `recipients`.
    addresses_len: usize,
    recipient_count: u32,
    pub(super) content_len: u64,
    /// Number of octets of the content that were reported, or reported as missing.
    reported_len: u64,
    pub(super) is_complete: bool,
    /// True if the client has sent all of the mail's content.
    pub(super) has_ended: bool,
    /// Code of the reply to the mail's content.
    pub(super) code: Option<u16>,
    /// In LMTP, number of entries of `recipients`, from the first, for which replies to the content were received.
    answered_count: usize,
}

state! {
    struct Envelope {
        mail, sender, size, recipients, recipient_count, content_len, reported_len, is_complete, has_ended, code,
        answered_count,
        .. addresses_len,
    }
    if |envelope| {
        let addresses = || envelope.recipients.iter().map(|recipient| recipient.address.len());
        let (len_max, len) = (addresses().max(), addresses().sum());
        envelope.addresses_len = len;
        len_max.is_none_or(|len| len <= ADDRESS_LEN_MAX)
            && envelope.sender.len() <= ADDRESS_LEN_MAX
            && envelope.recipients.len() <= RECIPIENT_COUNT_MAX
    }
}
state! { struct Recipient { address, code } }

fn kept(address: &[u8]) -> Vec<u8> {
    address.get(..ADDRESS_LEN_MAX).unwrap_or(address).to_vec()
}

impl Envelope {
    pub(super) fn new(mail: u64, sender: &[u8], size: Option<u64>) -> Self {
        Self {
            mail,
            sender: kept(sender),
            size,
            recipients: Vec::new(),
            addresses_len: 0,
            recipient_count: 0,
            content_len: 0,
            reported_len: 0,
            is_complete: true,
            has_ended: false,
            code: None,
            answered_count: 0,
        }
    }

    /// Adds a recipient to the mail. Returns its index; `None` if no more recipients are kept.
    pub(super) fn add(&mut self, address: &[u8]) -> Option<u16> {
        self.recipient_count = self.recipient_count.saturating_add(1);
        let place = self.recipients.len();
        if place >= RECIPIENT_COUNT_MAX {
            return None;
        }
        let address = kept(address);
        self.addresses_len += address.capacity();
        self.recipients.push(Recipient { address, code: None });
        u16::try_from(place).ok()
    }

    /// Records the code of the reply to the RCPT command of the recipient with index `place`.
    pub(super) fn answer(&mut self, place: u16, code: u16) {
        if let Some(recipient) = self.recipients.get_mut(usize::from(place)) {
            recipient.code = Some(code);
        }
    }

    /// Records the code of one of the replies to the content, of which LMTP has one for each accepted recipient.
    /// Returns whether it is the last reply.
    pub(super) fn answer_next(&mut self, code: u16) -> bool {
        let is_next = |(_, recipient): &(usize, &mut Recipient)| recipient.is_accepted();
        let mut unanswered = self.recipients.iter_mut().enumerate().skip(self.answered_count);
        if let Some((place, recipient)) = unanswered.find(is_next) {
            recipient.code = Some(code);
            self.answered_count = place + 1;
        }
        // The best reply represents the mail.
        self.code = Some(self.code.filter(|known| is_success(*known)).unwrap_or(code));
        !self.recipients.iter().skip(self.answered_count).any(Recipient::is_accepted)
    }

    /// Returns the next piece of the content.
    pub(super) fn content<'m>(&mut self, bytes: &'m [u8]) -> Content<'m> {
        Content { mail: self.mail, offset: self.report(bytes.len() as u64), bytes }
    }

    /// Returns the next missing octets of the content.
    pub(super) const fn gap(&mut self, len: u64) -> ContentGap {
        ContentGap { mail: self.mail, offset: self.report(len), len }
    }

    /// Adds to the number of reported octets. Returns the number before.
    const fn report(&mut self, len: u64) -> u64 {
        let offset = self.reported_len;
        self.reported_len = offset.saturating_add(len);
        offset
    }

    pub(super) fn summary(&self) -> Mail<'_> {
        Mail {
            mail: self.mail,
            reverse_path: Text(&self.sender),
            recipients: &self.recipients,
            recipient_count: self.recipient_count,
            declared_len: self.size,
            content_len: self.content_len,
            is_complete: self.is_complete && self.has_ended,
            code: self.code,
            is_accepted: self.code.map(is_success),
        }
    }

    pub(super) fn heap_len(&self) -> usize {
        self.sender.capacity() + self.recipients.capacity() * size_of::<Recipient>() + self.addresses_len
    }
}
