//! TLS over streams and DTLS over datagrams: what is said before all is encrypted.

mod cipher_names;
mod client_hello;
mod ja3;
mod ja4;
mod lists;
mod numbers;
mod server_hello;

pub use client_hello::{ClientHello, Transport};
pub use ja3::Ja3;
pub use ja4::Ja4;
pub use lists::{AlpnNames, Extension, Extensions, Hex, Numbers};
pub use numbers::{
    AlertDescription, AlertLevel, CipherSuite, ExtensionType, NamedGroup, SignatureScheme, Version, is_grease,
};
pub use server_hello::ServerHello;
