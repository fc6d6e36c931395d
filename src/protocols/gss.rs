//! Tokens of GSS-API (RFC 2743 section 3.1), with which clients of other protocols authenticate: of NTLM or Kerberos, bare or in
//! SPNEGO (RFC 4178).

use super::{kerberos, ntlm};
use crate::session::kit::{Kept, Open, Rows, Stored};

/// Adds what a token states to the rows of an authentication with this key. With `has_result`, the row of NTLM waits for
/// [`ntlm::result`], and the user that it states is returned, with the domain.
pub(super) fn token<R>(token: &[u8], key: u64, has_result: bool, rows: &mut Rows<'_, R>) -> Option<Kept<256>>
where
    R: Open + Stored<ntlm::Authentication> + Stored<kerberos::Exchange>,
{
    kerberos::token(token, key, rows);
    ntlm::token(token, key, has_result, rows)
}
