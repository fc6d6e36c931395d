//! Tokens of GSS-API (RFC 2743 section 3.1), with which clients of other protocols authenticate: of NTLM or Kerberos, bare or in
//! SPNEGO (RFC 4178).

use super::{kerberos, ntlm};
use crate::session::kit::{Kept, Open, Rows, Stored};

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
    let service_name = kerberos::service_of(token)?;
    Some(Stated { user_name: None, client_host: None, service_name: Some(service_name) })
}

/// Adds what a token states to the rows of an authentication with this key. With `has_result`, the row of NTLM waits for
/// [`ntlm::result`], and the user that it states is returned, with the domain.
pub(super) fn token<R>(token: &[u8], key: u64, has_result: bool, rows: &mut Rows<'_, R>) -> Option<Kept<256>>
where
    R: Open + Stored<ntlm::Authentication> + Stored<kerberos::Exchange>,
{
    kerberos::token(token, key, rows);
    ntlm::token(token, key, has_result, rows)
}
