//! Frames of an interface from a ring that the kernel fills (AF_PACKET, TPACKET_V3), without libpcap.

#![allow(unsafe_code, reason = "memory that is shared with the kernel, and options of its sockets")]

use std::ffi::CString;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{from_mut, from_ref};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use flowgauge::source::End;
use flowgauge::source::{self, SourceStats};
use flowgauge::{Frame, FrameBatch, LinkType, Next, Source, Timestamp};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Protocol, Socket, Type};

use super::{Settings, Shared};

const BLOCK_LEN: usize = 1 << 20;
const BLOCK_COUNT: usize = 16;

/// Milliseconds after which the kernel passes on a block that is not full.
const BLOCK_TIMEOUT_MS: u32 = 20;

/// Time after the end within which the kernel passes on the last block.
const LAST_BLOCK: Duration = Duration::from_millis(5 * BLOCK_TIMEOUT_MS as u64);

/// Nanoseconds after which a wait for frames ends.
const WAIT_NS: i64 = 20_000_000;

/// Interval between two reads of the kernel's counters.
const COUNT_INTERVAL: Duration = Duration::from_millis(200);

/// Length of both MAC addresses, after which a VLAN tag is.
const ADDRESSES_LEN: usize = 12;

/// An open capture on an interface.
#[derive(Debug)]
pub(crate) struct Ring {
    name: String,
    socket: Socket,
    blocks: memmap2::MmapRaw,
    /// Index of the block that the kernel fills next.
    next: usize,
    link_type: LinkType,
    shared: Shared,
    /// Time at which the capture ends.
    end: Option<Instant>,
    /// Time at which the end was noticed.
    ended: Option<Instant>,
    /// Number of blocks that were read since then: those before the end are not more than the ring has.
    last_count: usize,
    counted: Instant,
    /// A frame with its VLAN tag.
    tagged: Vec<u8>,
    stats: SourceStats,
}

fn set_option<T>(socket: &Socket, name: libc::c_int, value: T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and the length are those of `value`.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, name, from_ref(&value).cast(), len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Binds a socket to an interface, and returns the type of its hardware (ARPHRD_*).
fn bind(socket: &Socket, index: i32, protocol: u16) -> io::Result<u16> {
    // SAFETY: zero is a valid value of all fields, and pointers and lengths are those of the address.
    unsafe {
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        (address.sll_family, address.sll_protocol, address.sll_ifindex) =
            (libc::AF_PACKET as u16, protocol, index);
        let mut len = size_of_val(&address) as libc::socklen_t;
        if libc::bind(socket.as_raw_fd(), from_ref(&address).cast(), len) != 0
            || libc::getsockname(socket.as_raw_fd(), from_mut(&mut address).cast(), &raw mut len) != 0
        {
            return Err(io::Error::last_os_error());
        }
        Ok(address.sll_hatype)
    }
}

/// Returns the link type of frames, of which some kinds of hardware have none but IP packets.
fn link_type(hardware: u16) -> Option<LinkType> {
    /// Of `linux/if_arp.h`.
    const ARPHRD_RAWIP: u16 = 519;
    match hardware {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Some(LinkType::ETHERNET),
        ARPHRD_RAWIP
        | libc::ARPHRD_NONE
        | libc::ARPHRD_PPP
        | libc::ARPHRD_TUNNEL
        | libc::ARPHRD_TUNNEL6
        | libc::ARPHRD_SIT => Some(LinkType::RAW),
        _ => None,
    }
}

impl Ring {
    /// Starts to capture.
    pub(crate) fn open(name: &str, settings: &Settings, shared: Shared) -> Result<Self, source::Error> {
        let failure = |error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => source::Error::Permission { name: name.to_owned() },
            _ => source::Error::Live { device: name.to_owned(), message: error.to_string() },
        };
        let text = CString::new(name).map_err(|error| failure(error.into()))?;
        // SAFETY: the pointer is that of a text that ends with zero.
        let index = unsafe { libc::if_nametoindex(text.as_ptr()) } as i32;
        if index == 0 {
            return Err(failure(io::Error::last_os_error()));
        }
        let (socket, blocks, link_type) = Self::socket(index, settings).map_err(failure)?;
        let now = Instant::now();
        Ok(Self {
            name: name.to_owned(),
            socket,
            blocks,
            next: 0,
            link_type,
            shared,
            end: settings.duration.and_then(|duration| now.checked_add(duration)),
            ended: None,
            last_count: 0,
            counted: now,
            tagged: Vec::new(),
            stats: SourceStats::default(),
        })
    }

    fn socket(index: i32, settings: &Settings) -> io::Result<(Socket, memmap2::MmapRaw, LinkType)> {
        // A socket without protocol receives nothing before it is bound.
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0)))?;
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
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        // The hardware type is that of an address with a protocol; nothing is received with the first one.
        let hardware = bind(&socket, index, 0)?;
        let link_type = link_type(hardware).ok_or_else(|| {
            io::Error::other(format!(
                "capture on interfaces of the hardware type {hardware} is not supported"
            ))
        })?;
        if hardware == libc::ARPHRD_LOOPBACK {
            // Each frame is sent and received.
            set_option(&socket, libc::PACKET_IGNORE_OUTGOING, 1)?;
        }
        if settings.is_promiscuous {
            let membership = libc::packet_mreq {
                mr_ifindex: index,
                mr_type: libc::PACKET_MR_PROMISC as u16,
                mr_alen: 0,
                mr_address: [0; 8],
            };
            set_option(&socket, libc::PACKET_ADD_MEMBERSHIP, membership)?;
        }
        bind(&socket, index, protocol)?;
        Ok((socket, blocks, link_type))
    }

    /// Adds the frames that the kernel dropped since the last call.
    fn count_drops(&mut self) {
        let mut counts = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let mut len = size_of_val(&counts) as libc::socklen_t;
        // SAFETY: the pointers and the length are those of `counts` and `len`.
        let result = unsafe {
            let counts = from_mut(&mut counts).cast();
            let socket = self.socket.as_raw_fd();
            libc::getsockopt(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, counts, &raw mut len)
        };
        if result == 0 {
            self.stats.kernel_drop_count += u64::from(counts.tp_drops);
            self.shared.drop_count.store(self.stats.kernel_drop_count, Ordering::Relaxed);
        }
        self.counted = Instant::now();
    }

    /// Waits until the kernel passes on a block.
    fn wait(&self) -> Result<(), source::Error> {
        let mut ready = [PollFd::new(&self.socket, PollFlags::IN)];
        // An interrupted wait is like one without frames.
        let _ = poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: WAIT_NS }));
        if !ready.iter().any(|fd| fd.revents().intersects(PollFlags::ERR | PollFlags::HUP)) {
            return Ok(());
        }
        // For example, the interface was removed.
        match self.socket.take_error() {
            Ok(None) => Ok(()),
            Ok(Some(error)) | Err(error) => {
                Err(source::Error::Live { device: self.name.clone(), message: error.to_string() })
            }
        }
    }
}

impl Source for Ring {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, source::Error> {
        batch.clear();
        if self.counted.elapsed() >= COUNT_INTERVAL {
            self.count_drops();
        }
        let is_over = self.end.is_some_and(|end| end <= Instant::now());
        if self.ended.is_none() && (is_over || self.shared.is_ended.load(Ordering::Relaxed)) {
            self.ended = Some(Instant::now());
        }
        // The frames before the end are in blocks that the kernel passes on within its timeout.
        let ended = self.ended.map_or(Duration::ZERO, |ended| ended.elapsed());
        if self.last_count > BLOCK_COUNT {
            self.count_drops();
            return Ok(Next::End(End::Stopped));
        }
        // SAFETY: block `next` is within the map. The program owns a block from the time at which it reads the status
        // TP_STATUS_USER until it writes TP_STATUS_KERNEL; what it contains is checked to be within it.
        unsafe {
            let block = self.blocks.as_mut_ptr().add(self.next * BLOCK_LEN);
            let header = &raw mut (*block.cast::<libc::tpacket_block_desc>()).hdr.bh1;
            let status = AtomicU32::from_ptr(&raw mut (*header).block_status);
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                if ended >= LAST_BLOCK {
                    self.count_drops();
                    return Ok(Next::End(End::Stopped));
                }
                self.wait()?;
                return Ok(Next::Idle(SystemTime::now().into()));
            }
            let mut offset = (*header).offset_to_first_pkt as usize;
            for _ in 0..(*header).num_pkts {
                if offset + size_of::<libc::tpacket3_hdr>() > BLOCK_LEN {
                    break;
                }
                let packet = block.add(offset).cast::<libc::tpacket3_hdr>().read_unaligned();
                let (start, len) = (offset + usize::from(packet.tp_mac), packet.tp_snaplen as usize);
                if start + len > BLOCK_LEN {
                    break;
                }
                let data = std::slice::from_raw_parts(block.add(start), len);
                let frame = Frame {
                    timestamp: Timestamp::from_parts(packet.tp_sec.into(), packet.tp_nsec.into()),
                    link_type: self.link_type,
                    data,
                    wire_len: packet.tp_len,
                    interface: 0,
                };
                self.stats.frame_count += 1;
                self.stats.captured_octet_count += u64::from(packet.tp_snaplen);
                self.stats.wire_octet_count += u64::from(packet.tp_len);
                match vlan_tag(&packet).filter(|_| len >= ADDRESSES_LEN) {
                    None => batch.push(&frame),
                    Some(tag) => {
                        // The kernel has removed the tag.
                        let (addresses, rest) = data.split_at(ADDRESSES_LEN);
                        self.tagged.clear();
                        [addresses, &tag, rest].iter().for_each(|part| self.tagged.extend_from_slice(part));
                        let wire_len = packet.tp_len.saturating_add(tag.len() as u32);
                        batch.push(&Frame { data: &self.tagged, wire_len, ..frame });
                    }
                }
                offset += packet.tp_next_offset as usize;
            }
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        self.next = (self.next + 1) % BLOCK_COUNT;
        self.last_count += usize::from(self.ended.is_some());
        Ok(Next::Frames)
    }

    fn stats(&self) -> SourceStats {
        self.stats
    }
}

/// Returns the VLAN tag of a frame.
fn vlan_tag(packet: &libc::tpacket3_hdr) -> Option<[u8; 4]> {
    const DOT1Q: u16 = 0x8100;
    if packet.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let has_type = packet.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let [high, low] = if has_type { packet.hv1.tp_vlan_tpid } else { DOT1Q }.to_be_bytes();
    // The lower half.
    let [_, _, priority, id] = packet.hv1.tp_vlan_tci.to_be_bytes();
    Some([high, low, priority, id])
}
