//! Tokens of GSS-API (RFC 2743 section 3.1), with which clients of other protocols authenticate: of NTLM or Kerberos, bare or in
//! SPNEGO (RFC 4178).

use super::{kerberos, ntlm};
use crate::checkpoint::state;
use crate::session::kit::{Kept, Measured, Open, Rows, Stored};

/// What a token states without a connection.
#[derive(Debug)]
pub(crate) struct Stated {
    /// Name of the user, with the domain.
    pub(crate) user_name: Option<Kept<256>>,
    /// Name of the client's host.
    pub(crate) client_host: Option<Kept<48>>,
    /// Name of the service whose ticket is used, with its realm.
    pub(crate) service_name: Option<String>,
}

/// Returns the names in the last token of a client; `None` if it is another one.
pub(crate) fn stated(token: &[u8]) -> Option<Stated> {
    if let Some(logon) = ntlm::authenticated(token) {
        return Some(Stated {
            user_name: Some(logon.user()).filter(|user| !user.text().0.is_empty()),
            client_host: logon.client_host.filter(|host| !host.text().0.is_empty()),
            service_name: None,
        });
    }
    let service_name = kerberos::token::service_of(token)?;
    Some(Stated { user_name: None, client_host: None, service_name: Some(service_name) })
}

/// Adds what a token states to the rows of an authentication with this key. With `has_result`, the rows wait for [`result`], and the
/// user that NTLM states is returned, with the domain.
pub(super) fn read<R>(token: &[u8], key: u64, has_result: bool, rows: &mut Rows<'_, R>) -> Option<Kept<256>>
where
    R: Open + Stored<ntlm::Authentication> + Stored<kerberos::Exchange>,
{
    kerberos::token::read(token, key, has_result, rows);
    ntlm::read(token, key, has_result, rows)
}

/// Ends the rows of an authentication with the answer of the server.
pub(super) fn result<R>(is_accepted: bool, key: u64, rows: &mut Rows<'_, R>)
where
    R: Open + Stored<ntlm::Authentication> + Stored<kerberos::Exchange>,
{
    kerberos::token::result(is_accepted, key, rows);
    ntlm::result(is_accepted, key, rows);
}

/// The authentications of a connection in which the answer to each request with a token says whether the client is accepted.
#[derive(Debug, Default)]
pub(super) struct Logons {
    /// Number of authentications, by which their rows are found.
    count: u64,
    latest: Option<Request>,
}

/// The latest request with a token, and the user that it states.
#[derive(Debug)]
struct Request {
    number: u64,
    user: Option<Kept<256>>,
}

state! { struct Logons { count, latest } }
state! { struct Request { number, user } }

impl Logons {
    /// Reads the token of a request.
    pub(super) fn requested<R>(&mut self, number: u64, token: &[u8], rows: &mut Rows<'_, R>)
    where
        R: Open + Stored<ntlm::Authentication> + Stored<kerberos::Exchange>,
    {
        if ntlm::is_first(token) || kerberos::token::is_first(token) {
            self.count = self.count.wrapping_add(1);
        }
        let user = read(token, self.count, true, rows);
        self.latest = Some(Request { number, user });
    }

    /// Reads the token of the answer to a request, and whether the client is accepted; `None` if another request follows. Returns
    /// the user who is accepted.
    pub(super) fn answered<R>(
        &mut self,
        number: u64,
        token: &[u8],
        is_accepted: Option<bool>,
        rows: &mut Rows<'_, R>,
    ) -> Option<Kept<256>>
    where
        R: Open + Stored<ntlm::Authentication> + Stored<kerberos::Exchange>,
    {
        let request = self.latest.take_if(|latest| latest.number == number);
        read(token, self.count, request.is_some(), rows);
        let (user, is_accepted) = (request?.user, is_accepted?);
        result(is_accepted, self.count, rows);
        user.filter(|_| is_accepted)
    }

    /// Returns the number of octets that are allocated.
    pub(super) fn heap_len(&self) -> usize {
        self.latest.as_ref().and_then(|request| request.user.as_ref()).map_or(0, Kept::heap_len)
    }
}
