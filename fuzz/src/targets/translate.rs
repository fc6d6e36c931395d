//! Arbitrary octets as an Ethernet frame: the IP packet lies in the frame, agrees with its length field, and is found
//! again in a new frame around it. Rejected octets do not change.
use flowgauge::base::VlanIds;
use flowgauge::tap::{EthernetHeader, ethernet_to_ip, ip_to_ethernet};

use super::input::structured;

pub fn run(data: &[u8]) {
    let Some((headroom, outer, inner, data)) = structured::<(u8, u16, u16, &[u8])>(data) else { return };
    let header = EthernetHeader::new([2; 6], [4; 6], VlanIds::NONE.push(outer).push(inner));
    let headroom = usize::from(headroom % 32);
    if let Ok(packet) = ethernet_to_ip(data) {
        let offset = packet.as_ptr() as usize - data.as_ptr() as usize;
        assert!(offset >= 14 && offset + packet.len() <= data.len());
        let field = |at: usize| usize::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
        match packet[0] >> 4 {
            4 => assert_eq!(field(2), packet.len()),
            _ if field(4) != 0 => assert_eq!(field(4) + 40, packet.len()),
            _ => assert!(packet.len() == 40 || packet.len() > 65_575),
        }
        let mut buffer = [&vec![0; headroom][..], packet, &[0; 3]].concat();
        match ip_to_ethernet(&mut buffer, headroom, &header) {
            Ok(frame) => {
                assert_eq!(frame.len(), header.len() + packet.len());
                assert_eq!(ethernet_to_ip(frame), Ok(packet));
            }
            Err(_) => assert!(headroom < header.len()),
        }
    }
    let mut buffer = data.to_vec();
    if ip_to_ethernet(&mut buffer, headroom, &header).is_err() {
        assert_eq!(buffer, data);
    }
}
