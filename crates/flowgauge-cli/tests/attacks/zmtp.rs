//! Octets of ZMTP 3.1 without security, as a peer of ZeroMQ sends them.

/// The greeting of a peer.
pub(crate) fn greeting() -> Vec<u8> {
    let mut greeting = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1];
    greeting.extend(b"NULL");
    greeting.resize(64, 0);
    greeting
}

/// The command READY of a socket type, with an identity unless it is empty.
pub(crate) fn ready(socket_type: &[u8], identity: &[u8]) -> Vec<u8> {
    let mut body = b"\x05READY".to_vec();
    let mut property = |name: &[u8], value: &[u8]| {
        body.push(name.len() as u8);
        body.extend_from_slice(name);
        body.extend((value.len() as u32).to_be_bytes());
        body.extend_from_slice(value);
    };
    property(b"Socket-Type", socket_type);
    if !identity.is_empty() {
        property(b"Identity", identity);
    }
    with_len(4, &body)
}

/// A frame of a message.
pub(crate) fn frame(octets: &[u8], has_more: bool) -> Vec<u8> {
    with_len(u8::from(has_more), octets)
}

fn with_len(flags: u8, octets: &[u8]) -> Vec<u8> {
    let mut frame = match u8::try_from(octets.len()) {
        Ok(len) => vec![flags, len],
        Err(_) => [&[flags | 2][..], &(octets.len() as u64).to_be_bytes()].concat(),
    };
    frame.extend_from_slice(octets);
    frame
}

/// A subscription to a prefix.
pub(crate) fn subscription(prefix: &[u8]) -> Vec<u8> {
    frame(&[&[1], prefix].concat(), false)
}
