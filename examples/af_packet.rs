//! Prints the records of an interface until Ctrl-C, with frames from a ring that the kernel fills (AF_PACKET,
//! TPACKET_V3), without libpcap. Requires Linux and the capability CAP_NET_RAW.
//!
//! cargo run --example af_packet -- eth0

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "memory that is shared with the kernel")]
mod ring {
    use std::io;
    use std::os::fd::AsRawFd;
    use std::ptr::from_ref;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::SystemTime;

    use flowgauge::{Frame, FrameBatch, LinkType, Next, Source, Timestamp, source};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use socket2::{Domain, Protocol, Socket, Type};

    const BLOCK_LEN: usize = 1 << 20;
    const BLOCK_COUNT: usize = 16;
    /// Milliseconds after which the kernel passes on a block that is not full.
    const BLOCK_TIMEOUT_MS: u32 = 50;

    pub(super) struct Ring {
        socket: Socket,
        blocks: memmap2::MmapRaw,
        next: usize,
    }

    fn set_option<T>(socket: &Socket, name: libc::c_int, value: T) -> io::Result<()> {
        let len = size_of::<T>() as libc::socklen_t;
        // SAFETY: the pointer and the length are those of `value`.
        let result = unsafe {
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, name, from_ref(&value).cast(), len)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    impl Ring {
        pub(super) fn open(interface: &str) -> io::Result<Self> {
            let protocol = (libc::ETH_P_ALL as u16).to_be();
            let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(i32::from(protocol))))?;
            set_option(&socket, libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V3)?;
            let ring = libc::tpacket_req3 {
                tp_block_size: BLOCK_LEN as u32,
                tp_block_nr: BLOCK_COUNT as u32,
                tp_frame_size: 2048,
                tp_frame_nr: (BLOCK_LEN * BLOCK_COUNT / 2048) as u32,
                tp_retire_blk_tov: BLOCK_TIMEOUT_MS,
                tp_sizeof_priv: 0,
                tp_feature_req_word: 0,
            };
            set_option(&socket, libc::PACKET_RX_RING, ring)?;
            let blocks = memmap2::MmapOptions::new().len(BLOCK_LEN * BLOCK_COUNT).map_raw(&socket)?;
            // SAFETY: zero is a valid value of all fields, and pointer and length are those of the address.
            let result = unsafe {
                let mut address: libc::sockaddr_ll = std::mem::zeroed();
                (address.sll_family, address.sll_protocol) = (libc::AF_PACKET as u16, protocol);
                let name = std::ffi::CString::new(interface)?;
                address.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
                let len = size_of_val(&address) as libc::socklen_t;
                libc::bind(socket.as_raw_fd(), from_ref(&address).cast(), len)
            };
            if result == 0 { Ok(Self { socket, blocks, next: 0 }) } else { Err(io::Error::last_os_error()) }
        }
    }

    impl Source for Ring {
        fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, source::Error> {
            batch.clear();
            // SAFETY: block `next` is within the map. The program owns a block from the time at which it reads the status
            // TP_STATUS_USER until it writes TP_STATUS_KERNEL; headers and frames that the kernel wrote are within it.
            unsafe {
                let block = self.blocks.as_mut_ptr().add(self.next * BLOCK_LEN);
                let header = &raw mut (*block.cast::<libc::tpacket_block_desc>()).hdr.bh1;
                let status = AtomicU32::from_ptr(&raw mut (*header).block_status);
                if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                    let mut ready = [PollFd::new(&self.socket, PollFlags::IN)];
                    let _ = poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 100_000_000 }));
                    return Ok(Next::Idle(SystemTime::now().into()));
                }
                let mut offset = (*header).offset_to_first_pkt as usize;
                for _ in 0..(*header).num_pkts {
                    let packet = &*block.add(offset).cast::<libc::tpacket3_hdr>();
                    let data = block.add(offset + usize::from(packet.tp_mac));
                    batch.push(&Frame {
                        timestamp: Timestamp::from_parts(packet.tp_sec.into(), packet.tp_nsec.into()),
                        link_type: LinkType::ETHERNET,
                        data: std::slice::from_raw_parts(data, packet.tp_snaplen as usize),
                        wire_len: packet.tp_len,
                        interface: 0,
                    });
                    offset += packet.tp_next_offset as usize;
                }
                status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            }
            self.next = (self.next + 1) % BLOCK_COUNT;
            Ok(Next::Frames)
        }
    }
}

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use flowgauge::{Pipeline, Records, RunOptions, StopHandle};
    let interface = std::env::args().nth(1).ok_or("usage: af_packet INTERFACE")?;
    let options = RunOptions::default().stop(StopHandle::on_interrupt()?);
    let mut pipeline = Pipeline::builder().build(Records::new(|record| println!("{record}")))?;
    pipeline.run(&mut ring::Ring::open(&interface)?, &options)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {}
