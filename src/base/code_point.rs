//! Numbers that a registry assigns: link types, EtherTypes, IP protocols.
//!
//! These are newtypes with constants instead of enums, so that a value without a name here is preserved by every
//! layer.

use std::fmt;

macro_rules! code_points {
    (
        $(#[$type_meta:meta])*
        $type:ident($repr:ty) { $( $(#[$meta:meta])* $name:ident = $value:literal, $text:literal; )* }
        $( // Values that have a name in the registry but no constant here.
        named { $( $other:literal = $other_text:literal; )* } )?
    ) => {
        $(#[$type_meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
        pub struct $type(pub $repr);

        impl $type {
            $( $(#[$meta])* pub const $name: Self = Self($value); )*

            /// Returns the name that is registered for the number, if this crate knows it.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $( $value => Some($text), )*
                    $( $( $other => Some($other_text), )* )?
                    _ => None,
                }
            }
        }
    };
}

code_points! {
    /// The type of the outermost header of a frame: a link-layer header type of the registry that libpcap, pcap and
    /// pcapng share (the LINKTYPE_ values of `pcap-linktype(7)`).
    LinkType(u16) {
        /// BSD loopback: an address family in the host byte order of the capturing machine.
        NULL = 0, "NULL";
        /// Ethernet.
        ETHERNET = 1, "ETHERNET";
        /// AX.25.
        AX25 = 3, "AX25";
        /// IEEE 802.5 Token Ring.
        IEEE802_5 = 6, "IEEE802_5";
        /// ARCNET.
        ARCNET_BSD = 7, "ARCNET_BSD";
        /// SLIP.
        SLIP = 8, "SLIP";
        /// PPP, possibly with HDLC-like framing.
        PPP = 9, "PPP";
        /// FDDI.
        FDDI = 10, "FDDI";
        /// Raw IP with the number that the BSDs and Linux use for their DLT_RAW; seen in files although 101 is
        /// registered.
        RAW_DLT_12 = 12, "RAW";
        /// Raw IP with the number that OpenBSD uses for its DLT_RAW.
        RAW_DLT_14 = 14, "RAW";
        /// PPP with HDLC-like framing (RFC 1662).
        PPP_HDLC = 50, "PPP_HDLC";
        /// PPP over Ethernet, starting with the PPPoE header.
        PPP_ETHER = 51, "PPP_ETHER";
        /// LLC/SNAP-encapsulated ATM.
        ATM_RFC1483 = 100, "ATM_RFC1483";
        /// Raw IP: IPv4 or IPv6, distinguished by the version field.
        RAW = 101, "RAW";
        /// Cisco PPP with HDLC framing.
        C_HDLC = 104, "C_HDLC";
        /// IEEE 802.11 without a radio header.
        IEEE802_11 = 105, "IEEE802_11";
        /// Frame Relay.
        FRELAY = 107, "FRELAY";
        /// OpenBSD loopback: an address family in network byte order.
        LOOP = 108, "LOOP";
        /// Linux cooked capture, version 1.
        LINUX_SLL = 113, "LINUX_SLL";
        /// Apple LocalTalk.
        LTALK = 114, "LTALK";
        /// OpenBSD packet filter log.
        PFLOG = 117, "PFLOG";
        /// Prism radio header and IEEE 802.11.
        IEEE802_11_PRISM = 119, "IEEE802_11_PRISM";
        /// IP over Fibre Channel.
        IP_OVER_FC = 122, "IP_OVER_FC";
        /// Radiotap radio header and IEEE 802.11.
        IEEE802_11_RADIOTAP = 127, "IEEE802_11_RADIOTAP";
        /// AVS radio header and IEEE 802.11.
        IEEE802_11_AVS = 163, "IEEE802_11_AVS";
        /// PPP of the Linux daemon, preceded by a direction octet.
        PPP_PPPD = 166, "PPP_PPPD";
        /// Bluetooth HCI UART transport.
        BLUETOOTH_HCI_H4 = 187, "BLUETOOTH_HCI_H4";
        /// USB packets with a Linux header.
        USB_LINUX = 189, "USB_LINUX";
        /// Per-Packet Information header, followed by a frame of the link type that it names.
        PPI = 192, "PPI";
        /// IEEE 802.15.4 with frame check sequence.
        IEEE802_15_4_WITHFCS = 195, "IEEE802_15_4_WITHFCS";
        /// Bluetooth HCI with a direction field.
        BLUETOOTH_HCI_H4_WITH_PHDR = 201, "BLUETOOTH_HCI_H4_WITH_PHDR";
        /// PPP preceded by a direction octet.
        PPP_WITH_DIR = 204, "PPP_WITH_DIR";
        /// Cisco HDLC preceded by a direction octet.
        C_HDLC_WITH_DIR = 205, "C_HDLC_WITH_DIR";
        /// Frame Relay preceded by a direction octet.
        FRELAY_WITH_DIR = 206, "FRELAY_WITH_DIR";
        /// An MPLS label stack.
        MPLS = 219, "MPLS";
        /// USB packets with a longer Linux header.
        USB_LINUX_MMAPPED = 220, "USB_LINUX_MMAPPED";
        /// SocketCAN.
        CAN_SOCKETCAN = 227, "CAN_SOCKETCAN";
        /// Raw IPv4.
        IPV4 = 228, "IPV4";
        /// Raw IPv6.
        IPV6 = 229, "IPV6";
        /// Linux netfilter log.
        NFLOG = 239, "NFLOG";
        /// USB packets with the header of USBPcap.
        USBPCAP = 249, "USBPCAP";
        /// Bluetooth Low Energy.
        BLUETOOTH_LE_LL = 251, "BLUETOOTH_LE_LL";
        /// Wireshark's upper PDU export.
        WIRESHARK_UPPER_PDU = 252, "WIRESHARK_UPPER_PDU";
        /// Linux netlink.
        NETLINK = 253, "NETLINK";
        /// Linux cooked capture, version 2.
        LINUX_SLL2 = 276, "LINUX_SLL2";
        /// Raw IP, a super-packet of segmentation offload: one header and the payload of many segments. Not registered;
        /// only sources in this process use it. [`Frame::wire_len`](super::Frame::wire_len) is the sum of the lengths
        /// of all segments, each with its headers.
        SUPER_PACKET_IP = 65_280, "SUPER_PACKET_IP";
        /// Ethernet, a super-packet of segmentation offload; see [`Self::SUPER_PACKET_IP`].
        SUPER_PACKET_ETHERNET = 65_281, "SUPER_PACKET_ETHERNET";
    }
    named {
        2 = "EXP_ETHERNET"; 4 = "PRONET"; 5 = "CHAOS"; 99 = "SYMANTEC_FIREWALL"; 106 = "ATM_CLIP"; 109 = "ENC";
        115 = "ECONET"; 116 = "IPFILTER"; 118 = "CISCO_IOS"; 120 = "IEEE802_11_AIRONET"; 121 = "HHDLC"; 123 = "SUNATM"; 124 = "RIO";
        125 = "PCI_EXP"; 126 = "AURORA"; 128 = "TZSP"; 129 = "ARCNET_LINUX"; 130 = "JUNIPER_MLPPP";
        131 = "JUNIPER_MLFR"; 132 = "JUNIPER_ES"; 133 = "JUNIPER_GGSN"; 134 = "JUNIPER_MFR"; 135 = "JUNIPER_ATM2";
        136 = "JUNIPER_SERVICES"; 137 = "JUNIPER_ATM1"; 138 = "APPLE_IP_OVER_IEEE1394";
        139 = "MTP2_WITH_PHDR"; 140 = "MTP2"; 141 = "MTP3"; 142 = "SCCP"; 143 = "DOCSIS"; 144 = "LINUX_IRDA";
        145 = "IBM_SP"; 146 = "IBM_SN"; 164 = "JUNIPER_MONITOR"; 165 = "BACNET_MS_TP"; 167 = "JUNIPER_PPPOE";
        168 = "JUNIPER_PPPOE_ATM"; 169 = "GPRS_LLC"; 170 = "GPF_T"; 171 = "GPF_F"; 172 = "GCOM_T1E1";
        173 = "GCOM_SERIAL"; 174 = "JUNIPER_PIC_PEER"; 175 = "ERF_ETH"; 176 = "ERF_POS"; 177 = "LINUX_LAPD";
        178 = "JUNIPER_ETHER"; 179 = "JUNIPER_PPP"; 180 = "JUNIPER_FRELAY"; 181 = "JUNIPER_CHDLC"; 182 = "MFR";
        183 = "JUNIPER_VP"; 184 = "A429"; 185 = "A653_ICM"; 186 = "USB_FREEBSD"; 188 = "IEEE802_16_MAC_CPS";
        190 = "CAN20B"; 191 = "IEEE802_15_4_LINUX"; 193 = "IEEE802_16_MAC_CPS_RADIO"; 194 = "JUNIPER_ISM";
        196 = "SITA"; 197 = "ERF"; 198 = "RAIF1"; 199 = "IPMB_KONTRON"; 200 = "JUNIPER_ST"; 202 = "AX25_KISS";
        203 = "LAPD"; 207 = "LAPB_WITH_DIR"; 209 = "IPMB_LINUX"; 210 = "FLEXRAY"; 211 = "MOST"; 212 = "LIN";
        213 = "X2E_SERIAL"; 214 = "X2E_XORAYA"; 215 = "IEEE802_15_4_NONASK_PHY"; 216 = "LINUX_EVDEV";
        217 = "GSMTAP_UM"; 218 = "GSMTAP_ABIS"; 221 = "DECT"; 222 = "AOS"; 223 = "WIHART"; 224 = "FC_2";
        225 = "FC_2_WITH_FRAME_DELIMS"; 226 = "IPNET"; 230 = "IEEE802_15_4_NOFCS"; 231 = "DBUS";
        232 = "JUNIPER_VS"; 233 = "JUNIPER_SRX_E2E"; 234 = "JUNIPER_FIBRECHANNEL"; 235 = "DVB_CI";
        236 = "MUX27010"; 237 = "STANAG_5066_D_PDU"; 238 = "JUNIPER_ATM_CEMIC"; 240 = "NETANALYZER";
        241 = "NETANALYZER_TRANSPARENT"; 242 = "IPOIB"; 243 = "MPEG_2_TS"; 244 = "NG40"; 245 = "NFC_LLCP";
        246 = "PFSYNC"; 247 = "INFINIBAND"; 248 = "SCTP"; 250 = "RTAC_SERIAL"; 254 = "BLUETOOTH_LINUX_MONITOR";
        255 = "BLUETOOTH_BREDR_BB"; 256 = "BLUETOOTH_LE_LL_WITH_PHDR"; 257 = "PROFIBUS_DL"; 258 = "PKTAP";
        259 = "EPON"; 260 = "IPMI_HPM_2"; 261 = "ZWAVE_R1_R2"; 262 = "ZWAVE_R3"; 263 = "WATTSTOPPER_DLM";
        264 = "ISO_14443"; 265 = "RDS"; 266 = "USB_DARWIN"; 267 = "OPENFLOW"; 268 = "SDLC";
        269 = "TI_LLN_SNIFFER"; 270 = "LORATAP"; 271 = "VSOCK"; 272 = "NORDIC_BLE"; 273 = "DOCSIS31_XRA31";
        274 = "ETHERNET_MPACKET"; 275 = "DISPLAYPORT_AUX"; 277 = "SERCOS_MONITOR"; 278 = "OPENVIZSLA";
        279 = "EBHSCR"; 280 = "VPP_DISPATCH"; 281 = "DSA_TAG_BRCM"; 282 = "DSA_TAG_BRCM_PREPEND";
        283 = "IEEE802_15_4_TAP"; 284 = "DSA_TAG_DSA"; 285 = "DSA_TAG_EDSA"; 286 = "ELEE";
        287 = "Z_WAVE_SERIAL"; 288 = "USB_2_0"; 289 = "ATSC_ALP";
    }
}

code_points! {
    /// The protocol number in an Ethernet header, a VLAN tag or a cooked header (IEEE 802 registry).
    EtherType(u16) {
        /// IPv4.
        IPV4 = 0x0800, "IPv4";
        /// ARP.
        ARP = 0x0806, "ARP";
        /// IEEE 802.1Q customer VLAN tag.
        VLAN = 0x8100, "802.1Q";
        /// IPv6.
        IPV6 = 0x86dd, "IPv6";
        /// MPLS, unicast.
        MPLS = 0x8847, "MPLS";
        /// MPLS, multicast.
        MPLS_MULTICAST = 0x8848, "MPLS multicast";
        /// PPPoE discovery.
        PPPOE_DISCOVERY = 0x8863, "PPPoE discovery";
        /// PPPoE session.
        PPPOE_SESSION = 0x8864, "PPPoE session";
        /// EAP over LAN.
        EAPOL = 0x888e, "EAPOL";
        /// IEEE 802.1ad service VLAN tag.
        SERVICE_VLAN = 0x88a8, "802.1ad";
        /// LLDP.
        LLDP = 0x88cc, "LLDP";
        /// MACsec.
        MACSEC = 0x88e5, "MACsec";
        /// IEEE 802.1ah provider backbone bridging.
        PROVIDER_BACKBONE = 0x88e7, "802.1ah";
        /// Network Service Header.
        NSH = 0x894f, "NSH";
        /// VN-Tag.
        VN_TAG = 0x8926, "VN-Tag";
        /// Pre-standard outer VLAN tag, still seen on provider links.
        VLAN_9100 = 0x9100, "802.1Q";
        /// Transparent Ethernet bridging.
        ETHERNET_BRIDGING = 0x6558, "transparent Ethernet bridging";
    }
}

code_points! {
    /// The protocol number in an IP header (IANA protocol numbers).
    IpProtocol(u8) {
        /// IPv6 hop-by-hop options.
        HOP_BY_HOP = 0, "hopopt";
        /// ICMP.
        ICMP = 1, "icmp";
        /// IGMP.
        IGMP = 2, "igmp";
        /// IPv4 in IP.
        IPV4 = 4, "ipv4";
        /// TCP.
        TCP = 6, "tcp";
        /// EGP.
        EGP = 8, "egp";
        /// UDP.
        UDP = 17, "udp";
        /// DCCP.
        DCCP = 33, "dccp";
        /// IPv6 in IP.
        IPV6 = 41, "ipv6";
        /// IPv6 routing header.
        IPV6_ROUTE = 43, "ipv6-route";
        /// IPv6 fragment header.
        IPV6_FRAG = 44, "ipv6-frag";
        /// RSVP.
        RSVP = 46, "rsvp";
        /// GRE.
        GRE = 47, "gre";
        /// IPsec ESP.
        ESP = 50, "esp";
        /// IPsec AH.
        AH = 51, "ah";
        /// ICMPv6.
        ICMPV6 = 58, "ipv6-icmp";
        /// No next header after an IPv6 extension.
        IPV6_NO_NEXT = 59, "ipv6-nonxt";
        /// IPv6 destination options.
        IPV6_OPTS = 60, "ipv6-opts";
        /// EIGRP.
        EIGRP = 88, "eigrp";
        /// OSPF.
        OSPF = 89, "ospf";
        /// PIM.
        PIM = 103, "pim";
        /// VRRP.
        VRRP = 112, "vrrp";
        /// L2TPv3 directly over IP.
        L2TP = 115, "l2tp";
        /// SCTP.
        SCTP = 132, "sctp";
        /// IPv6 mobility header.
        MOBILITY = 135, "mobility-header";
        /// UDP-Lite.
        UDP_LITE = 136, "udplite";
        /// MPLS in IP.
        MPLS = 137, "mpls-in-ip";
    }
}

impl LinkType {
    /// Returns whether frames of this type are super-packets, which count as their segments.
    pub(crate) const fn is_super_packet(self) -> bool {
        matches!(self, Self::SUPER_PACKET_IP | Self::SUPER_PACKET_ETHERNET)
    }
}

impl IpProtocol {
    /// Returns the IP protocol with this name or number, in the form that [`Display`](fmt::Display) writes.
    #[must_use]
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        (0..=u8::MAX).map(Self).find(|protocol| protocol.to_string() == name)
    }

    /// Returns whether the header of the IP protocol starts with a source and a destination port in its first four
    /// octets: TCP, UDP, SCTP.
    #[must_use]
    pub const fn has_ports(self) -> bool {
        matches!(self, Self::TCP | Self::UDP | Self::SCTP)
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "LINKTYPE {}", self.0),
        }
    }
}

impl fmt::Display for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "EtherType 0x{:04x}", self.0),
        }
    }
}

impl fmt::Display for IpProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unnamed_values_are_preserved() {
        assert_eq!(LinkType(40_000).to_string(), "LINKTYPE 40000");
        assert_eq!(EtherType(0x1234).to_string(), "EtherType 0x1234");
        assert_eq!(IpProtocol(253).to_string(), "253");
        assert_eq!(IpProtocol(253).name(), None);
        // This name is in the registry only, without a constant here.
        assert_eq!(LinkType(143).to_string(), "DOCSIS");
    }
}
