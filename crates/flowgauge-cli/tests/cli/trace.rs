//! Captures that tests write: connections of TCP in packets without a link layer.

use etherparse::PacketBuilder;

/// A capture of raw IP packets.
pub(super) struct Trace {
    packets: Vec<(u64, Vec<u8>)>,
}

/// Ends and next sequence numbers of a TCP connection.
pub(super) struct Connection {
    pub(super) ends: [([u8; 4], u16); 2],
    pub(super) next: [u32; 2],
}

impl Trace {
    pub(super) const fn new() -> Self {
        Self { packets: Vec::new() }
    }

    /// Adds a segment from one of the ends. Times are in microseconds.
    pub(super) fn segment(
        &mut self,
        time: u64,
        connection: &mut Connection,
        from: usize,
        flags: &str,
        payload: &[u8],
    ) {
        let [(source, source_port), (destination, destination_port)] =
            [connection.ends[from], connection.ends[1 - from]];
        let mut builder = PacketBuilder::ipv4(source, destination, 64).tcp(
            source_port,
            destination_port,
            connection.next[from],
            65_000,
        );
        for flag in flags.chars() {
            builder = match flag {
                'S' => builder.syn(),
                'A' => builder.ack(connection.next[1 - from]),
                'F' => builder.fin(),
                'R' => builder.rst(),
                'P' => builder.psh(),
                other => panic!("{other}"),
            };
        }
        let mut packet = Vec::new();
        builder.write(&mut packet, payload).unwrap();
        let sequence_len = payload.len() + flags.chars().filter(|flag| "SF".contains(*flag)).count();
        connection.next[from] = connection.next[from].wrapping_add(sequence_len as u32);
        self.packets.push((time, packet));
    }

    /// Adds a connection with a request and a response, in half a millisecond.
    pub(super) fn exchange(&mut self, time: u64, ends: [([u8; 4], u16); 2], request: &[u8], response: &[u8]) {
        let mut connection = Connection { ends, next: [1000, 9000] };
        self.segment(time, &mut connection, 0, "S", b"");
        self.segment(time + 50, &mut connection, 1, "SA", b"");
        self.segment(time + 100, &mut connection, 0, "A", b"");
        for (number, part) in request.chunks(1400).enumerate() {
            self.segment(time + 150 + number as u64, &mut connection, 0, "AP", part);
        }
        for part in response.chunks(1400) {
            self.segment(time + 200 + request.len() as u64, &mut connection, 1, "AP", part);
        }
        let end = time + 300 + request.len() as u64;
        self.segment(end, &mut connection, 0, "AF", b"");
        self.segment(end + 50, &mut connection, 1, "AF", b"");
        self.segment(end + 100, &mut connection, 0, "A", b"");
    }

    /// Returns the file, with its packets in the order of their times.
    pub(super) fn file(mut self) -> Vec<u8> {
        self.packets.sort_by_key(|(time, _)| *time);
        let mut capture = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
            capture.extend(word.to_le_bytes());
        }
        for (time, packet) in self.packets {
            let len = packet.len() as u32;
            for word in [1_700_000_000 + (time / 1_000_000) as u32, (time % 1_000_000) as u32, len, len] {
                capture.extend(word.to_le_bytes());
            }
            capture.extend(packet);
        }
        capture
    }
}
