//! Operating systems that texts state, and that TCP handshakes indicate.

use flowgauge::Packet;

/// Parts of texts such as user agents, and the system of each. The first one that a text has decides: a text of a mobile system
/// often names its ancestor too.
const PARTS: [(&str, &str); 24] = [
    ("Windows NT 10.0", "Windows 10 or later"),
    ("Windows NT 6.3", "Windows 8.1"),
    ("Windows NT 6.2", "Windows 8"),
    ("Windows NT 6.1", "Windows 7"),
    ("Windows NT 6.0", "Windows Vista"),
    ("Windows NT 5.2", "Windows XP x64 or Server 2003"),
    ("Windows NT 5.1", "Windows XP"),
    ("Windows NT 5.0", "Windows 2000"),
    ("Android", "Android"),
    ("iPhone OS", "iOS"),
    ("iPad", "iPadOS"),
    ("CFNetwork", "Apple"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Ubuntu", "Ubuntu"),
    ("Debian", "Debian"),
    ("Raspbian", "Raspbian"),
    ("FreeBSD", "FreeBSD"),
    ("OpenBSD", "OpenBSD"),
    ("Red Hat", "Red Hat"),
    ("CentOS", "CentOS"),
    ("Windows", "Windows"),
    ("Microsoft-CryptoAPI", "Windows"),
    ("Linux", "Linux"),
];

/// Returns the system that a text names.
pub(super) fn of_text(text: &str) -> Option<&'static str> {
    PARTS.iter().find(|(part, _)| text.contains(part)).map(|(_, system)| *system)
}

/// Returns the system that a vendor class of DHCP names (option 60).
pub(super) fn of_vendor_class(class: &str) -> Option<String> {
    if class.starts_with("MSFT") {
        return Some("Windows".to_owned());
    }
    if let Some(version) = class.strip_prefix("android-dhcp-") {
        return Some(format!("Android {version}"));
    }
    of_text(class).map(str::to_owned)
}

/// Returns the name of a version of Windows: `10.0.17763`.
pub(super) fn windows(version: &str) -> Option<String> {
    let mut numbers = version.split('.');
    let (major, minor, build) = (numbers.next()?, numbers.next()?, numbers.next()?);
    // Samba states 6.1.0.
    if build == "0" {
        return None;
    }
    let name = match (major, minor) {
        ("10", "0") => match build.parse::<u32>().ok()? {
            20_348 => "Windows Server 2022",
            22_000.. => "Windows 11 or Server 2025",
            17_763 => "Windows 10 or Server 2019",
            14_393 => "Windows 10 or Server 2016",
            _ => "Windows 10",
        },
        ("6", "3") => "Windows 8.1 or Server 2012 R2",
        ("6", "2") => "Windows 8 or Server 2012",
        ("6", "1") => "Windows 7 or Server 2008 R2",
        ("6", "0") => "Windows Vista or Server 2008",
        ("5", "2") => "Windows XP x64 or Server 2003",
        ("5", "1") => "Windows XP",
        ("5", "0") => "Windows 2000",
        _ => "Windows",
    };
    Some(format!("{name} ({version})"))
}

/// Kinds of TCP options (IANA "TCP Option Kind Numbers").
mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const NOP: u8 = 1;
    pub(super) const MSS: u8 = 2;
    pub(super) const SCALE: u8 = 3;
    pub(super) const SACK_PERMITTED: u8 = 4;
    pub(super) const TIMESTAMPS: u8 = 8;
}

/// Orders of the options in the first segment of a connection: those of current versions of common systems.
const ORDERS: [(&[u8], u8, &str); 4] = [
    (&[kind::MSS, kind::SACK_PERMITTED, kind::TIMESTAMPS, kind::NOP, kind::SCALE], 64, "Linux"),
    (&[kind::MSS, kind::NOP, kind::SCALE, kind::NOP, kind::NOP, kind::SACK_PERMITTED], 128, "Windows"),
    (
        &[
            kind::MSS,
            kind::NOP,
            kind::SCALE,
            kind::NOP,
            kind::NOP,
            kind::TIMESTAMPS,
            kind::SACK_PERMITTED,
            kind::END,
        ],
        64,
        "macOS or iOS",
    ),
    (&[kind::MSS, kind::NOP, kind::SCALE, kind::SACK_PERMITTED, kind::TIMESTAMPS], 64, "FreeBSD"),
];

/// Returns the system that the first segment of a connection indicates: the order of its options, and an initial hop limit from
/// which it can come.
pub(super) fn of_syn(packet: &Packet<'_>) -> Option<&'static str> {
    let header = packet.frame.get(packet.transport_offset as usize..packet.payload_offset as usize)?;
    let mut options = header.get(20..)?;
    let mut order = [0; 12];
    let mut len = 0;
    while let [kind, rest @ ..] = options {
        *order.get_mut(len)? = *kind;
        len += 1;
        options = match *kind {
            kind::END => break,
            kind::NOP => rest,
            _ => options.get(usize::from(*rest.first()?).max(2)..)?,
        };
    }
    let order = order.get(..len)?;
    let is_it = |(known, hop_limit, _): &&(&[u8], u8, &str)| {
        *known == order && packet.hop_limit <= *hop_limit && packet.hop_limit > hop_limit.saturating_sub(40)
    };
    ORDERS.iter().find(is_it).map(|(.., system)| *system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_the_most_particular_system() {
        let agent = "Mozilla/5.0 (Linux; Android 13; Pixel 7) AppleWebKit/537.36";
        assert_eq!(of_text(agent), Some("Android"));
        assert_eq!(of_text("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3"), Some("Debian"));
        assert_eq!(of_text("curl/7.88.1"), None);
        assert_eq!(of_vendor_class("MSFT 5.0").as_deref(), Some("Windows"));
        assert_eq!(of_vendor_class("android-dhcp-13").as_deref(), Some("Android 13"));
        assert_eq!(of_vendor_class("dhcpcd-9.4.1:Linux-6.1.0:x86_64").as_deref(), Some("Linux"));
        assert_eq!(windows("10.0.17763").as_deref(), Some("Windows 10 or Server 2019 (10.0.17763)"));
        assert_eq!(windows("10.0.20348").as_deref(), Some("Windows Server 2022 (10.0.20348)"));
        assert_eq!(windows("10.0.26100").as_deref(), Some("Windows 11 or Server 2025 (10.0.26100)"));
        assert_eq!(windows("10.0.19045").as_deref(), Some("Windows 10 (10.0.19045)"));
        assert_eq!(windows("5.0.2195").as_deref(), Some("Windows 2000 (5.0.2195)"));
        assert_eq!(of_text("Mozilla/4.0 (compatible; MSIE 5.01; Windows NT 5.0)"), Some("Windows 2000"));
        assert_eq!(windows("6.1.0"), None);
    }
}
