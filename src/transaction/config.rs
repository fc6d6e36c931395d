//! How transactions are joined.

/// How transactions are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransactionConfig {
    /// Compute digests of files.
    pub has_hashes: bool,
    /// Decode gzip and deflate of bodies of HTTP (feature `compression`), as far as the octets of the connection pay for it
    /// ([`DecodingCredit`](super::DecodingCredit)). Each body needs some 45 KiB meanwhile, and at most 1024 are decoded at the
    /// same time; others are not decoded. [`File::decoding`](super::File::decoding) is the result.
    pub decodes: bool,
}

impl TransactionConfig {
    /// The default.
    pub(crate) const DEFAULT: Self = Self { has_hashes: false, decodes: false };
}
