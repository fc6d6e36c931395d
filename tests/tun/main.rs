//! TUN and TAP devices in network namespaces that the tests create: forwarding, flows compared with the counters of the
//! interfaces and the reports of iperf3, and errors. Skipped without root; `FLOWGAUGE_ROOT_TESTS=required` turns a skip
//! into a failure.

#[path = "../support/allocations.rs"]
mod allocations;
mod network;

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use flowgauge::base::IpProtocol;
use flowgauge::pipeline::{DeviceSide, ForwardAction, ForwardHandler, ForwardStats, Forwarder};
use flowgauge::source::{SourceStats, TunConfig, TunDevice, TunLayer, TunSource};
use flowgauge::tap::{NeighborConfig, NeighborTable};
use flowgauge::{FlowRecord, Frame, Pipeline, RunOptions, Sink, Source};

use network::{Network, during, is_available, pipeline, run};

fn config(offload: bool) -> TunConfig {
    let mut config = TunConfig::default();
    config.offload = offload;
    config
}

/// Octets that iperf3 sends on each connection before the data.
const COOKIE_LEN: u64 = 37;

/// Checks that each packet that was received was sent or counted as dropped.
fn assert_conserved(stats: &ForwardStats) {
    let ForwardStats { sent_count, dropped_count, overflow_count, rejected_count, split_count, .. } = *stats;
    let other = stats.neighbor_count + stats.untranslated_count + stats.unresolved_count;
    let accounted = sent_count + dropped_count + overflow_count + rejected_count + other;
    match split_count {
        0 => assert_eq!(accounted, stats.received.frame_count, "{stats:?}"),
        _ => assert!(accounted > stats.received.frame_count, "{stats:?}"),
    }
}

/// The flow of the data connection: the one with the most octets.
fn data_flow(records: &[FlowRecord], protocol: IpProtocol) -> FlowRecord {
    let flows = records.iter().filter(|record| record.key.protocol() == protocol);
    flows.max_by_key(|record| record.octet_count()).expect("a flow").clone()
}

/// Result of sending 20 MB of TCP and 2 MB of UDP over IPv4 and IPv6.
struct Transfer {
    flows: Vec<FlowRecord>,
    stats: [ForwardStats; 2],
}

fn transfer(offload: bool, channel: Option<usize>, is_asynchronous: bool) -> Transfer {
    let network = Network::new(false);
    let (pipeline, records) = pipeline();
    let devices = [0, 1].map(|side| network.open(side, config(offload)));
    let [left, right] = devices;
    let mut forwarder = Forwarder::new(pipeline, (), left, right).expect("equal queues").channel(channel);
    let mut reports = Vec::new();
    let mut counters = [[[0; 2]; 2]; 2];
    let result = during(&mut forwarder, is_asynchronous, || {
        network.attach_both();
        for is_ipv6 in [false, true] {
            reports.push((IpProtocol::TCP, is_ipv6, network.iperf(is_ipv6, &["-n", "20M"])));
            reports.push((
                IpProtocol::UDP,
                is_ipv6,
                network.iperf(is_ipv6, &["-u", "-b", "50M", "-n", "2M"]),
            ));
        }
        thread::sleep(Duration::from_millis(300));
        counters = [0, 1].map(|side| network.counters(side));
    });
    result.expect("no error");
    let stats = [DeviceSide::Left, DeviceSide::Right].map(|side| forwarder.stats(side));
    // The counters of the interfaces: the kernel's `tx` is what the program received.
    for (side, stats) in stats.iter().enumerate() {
        let SourceStats { frame_count, captured_octet_count, .. } = stats.received;
        let [sent, received] = [counters[side][0], counters[1 - side][1]];
        assert_eq!([frame_count, captured_octet_count], sent, "side {side}: {stats:?}");
        assert_eq!(stats.sent_count, received[0], "side {side}: {stats:?}");
        assert_conserved(stats);
    }
    let flows = std::mem::take(&mut *records.lock().expect("no panic"));
    // Octets of all flows are those of all packets with an address, except for packets without a flow.
    let flow_octets: u64 = flows.iter().map(FlowRecord::octet_count).sum();
    let wire_octets: u64 = stats.iter().map(|stats| stats.received.wire_octet_count).sum();
    assert_eq!(flow_octets, wire_octets);
    for (protocol, is_ipv6, report) in &reports {
        let of_version: Vec<_> =
            flows.iter().filter(|record| record.key.is_ipv6() == *is_ipv6).cloned().collect();
        let flow = data_flow(&of_version, *protocol);
        let counters = &flow.forward.counters;
        if *protocol == IpProtocol::UDP {
            // One more datagram begins the connection.
            assert_eq!(counters.packet_count, report["sum"]["packets"].as_u64().expect("packets") + 1);
            continue;
        }
        let octets = |sum: &str| report[sum]["bytes"].as_u64().expect("octets") + COOKIE_LEN;
        let again = report["sum_sent"]["retransmits"].as_u64().expect("retransmissions");
        // Octets that the sender still held at the end were never sent.
        assert!(counters.payload_octet_count >= octets("sum_received"), "{counters:?} {report}");
        // After iperf3 has read its count, the kernel may send the last octets again.
        if again == 0 && flow.forward.tcp.retransmitted_count == 0 {
            assert!(counters.payload_octet_count <= octets("sum_sent"), "{counters:?} {report}");
        }
        // Each segment but the last of a super-packet is full.
        let segment_len = if *is_ipv6 { 1500 - 60 - 12 } else { 1500 - 40 - 12 };
        let needed = counters.payload_octet_count.div_ceil(segment_len);
        assert!(counters.packet_count >= needed, "{counters:?}");
        assert!(counters.packet_count <= needed + needed / 8 + 60, "{counters:?}");
    }
    Transfer { flows, stats }
}

/// What two runs have in common: protocol, IP version and number of the flows; packets and octets of the data over UDP.
/// (How much TCP sends again depends on the run.)
type Common = Vec<(IpProtocol, bool, usize, Option<[u64; 2]>)>;

fn common(flows: &[FlowRecord]) -> Common {
    let mut common = Vec::new();
    for (protocol, is_ipv6) in [IpProtocol::TCP, IpProtocol::UDP]
        .into_iter()
        .flat_map(|protocol| [(protocol, false), (protocol, true)])
    {
        let of_kind: Vec<_> = flows
            .iter()
            .filter(|record| record.key.protocol() == protocol && record.key.is_ipv6() == is_ipv6)
            .cloned()
            .collect();
        let counters = data_flow(&of_kind, protocol).forward.counters;
        let totals = [counters.packet_count, counters.octet_count];
        common.push((protocol, is_ipv6, of_kind.len(), (protocol == IpProtocol::UDP).then_some(totals)));
    }
    common
}

#[test]
fn flows_agree_with_interfaces_and_iperf3_in_all_configurations() {
    if !is_available() {
        return;
    }
    let mut expected = None;
    for offload in [false, true] {
        for channel in [None, Some(128)] {
            for is_asynchronous in [false, true] {
                let Transfer { flows, stats } = transfer(offload, channel, is_asynchronous);
                assert_eq!(stats[0].received.super_packet_count > 0, offload, "{stats:?}");
                assert_eq!([stats[0].split_count, stats[1].split_count], [0, 0]);
                let common = common(&flows);
                assert_eq!(*expected.get_or_insert(common.clone()), common);
            }
        }
    }
}

/// Sends data over TCP with a handler and one kind of device on each side, and returns the counts of the left device, and
/// the octets that iperf3 received.
fn transfer_with<H: ForwardHandler<Box<dyn Sink<State = (), Stage = flowgauge::Flows> + Send>> + 'static>(
    offloads: [bool; 2],
    handler: H,
    options: &[&str],
) -> (ForwardStats, u64) {
    let network = Network::new(false);
    let pipeline = boxed_pipeline();
    let [left, right] = [0, 1].map(|side| network.open(side, config(offloads[side])));
    let mut forwarder = Forwarder::new(pipeline, handler, left, right).expect("equal queues");
    let mut received = 0;
    during(&mut forwarder, false, || {
        network.attach_both();
        let report = network.iperf(false, options);
        received = report["sum_received"]["bytes"].as_u64().expect("octets");
    })
    .expect("no error");
    let stats = forwarder.stats(DeviceSide::Left);
    assert_conserved(&stats);
    (stats, received)
}

type BoxedSink = Box<dyn Sink<State = (), Stage = flowgauge::Flows> + Send>;

fn boxed_pipeline() -> Pipeline<BoxedSink> {
    let sink: BoxedSink = Box::new(());
    Pipeline::builder().build(sink).expect("valid settings")
}

#[test]
fn super_packets_are_split_for_a_device_without_offload() {
    if !is_available() {
        return;
    }
    let (stats, _) = transfer_with([true, false], (), &["-n", "10M"]);
    assert!(stats.split_count > 10, "{stats:?}");
    // The other device merges nothing, but accepts single packets.
    let (stats, _) = transfer_with([false, true], (), &["-n", "10M"]);
    assert_eq!(stats.split_count, 0);
}

/// Increments a count for each segment, and rewrites all TCP packets.
struct Rewriter(Arc<AtomicU64>);

impl<K: Sink> ForwardHandler<K> for Rewriter {
    fn packet(&mut self, _: &mut K, _: &Frame<'_>, _: DeviceSide) -> ForwardAction {
        ForwardAction::Rewrite
    }

    fn rewrite(&mut self, _: &mut K, packet: &mut Vec<u8>, _: DeviceSide) {
        assert!(packet.len() <= 1500);
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn rewritten_packets_are_single_segments() {
    if !is_available() {
        return;
    }
    let count = Arc::new(AtomicU64::new(0));
    let (stats, received) = transfer_with([true, true], Rewriter(Arc::clone(&count)), &["-n", "10M"]);
    assert!(stats.split_count > 10, "{stats:?}");
    // On a busy machine, iperf3 ends while the sender still holds some of the 10 MiB.
    assert!(received > 0 && count.load(Relaxed) >= received.div_ceil(1448), "{count:?} {received} {stats:?}");
}

#[test]
fn dropped_packets_are_counted() {
    if !is_available() {
        return;
    }
    let number = Arc::new(AtomicU64::new(0));
    // Every fiftieth packet of the data is dropped, and TCP sends it again.
    let handler = {
        let number = Arc::clone(&number);
        move |_: &mut BoxedSink, frame: &Frame<'_>, _: DeviceSide| {
            let is_data = frame.data.len() > 1000;
            let is_dropped = is_data && (number.fetch_add(1, Relaxed) + 1).is_multiple_of(50);
            if is_dropped { ForwardAction::Drop } else { ForwardAction::Pass }
        }
    };
    let (stats, received) = transfer_with([false, false], handler, &["-n", "4M"]);
    let number = number.load(Relaxed);
    assert!(received > 0 && number >= 50, "{number} {stats:?}");
    assert_eq!(stats.dropped_count, number / 50, "{stats:?}");
}

#[test]
fn several_queues_forward_all_flows() {
    if !is_available() {
        return;
    }
    let network = Network::new(false);
    let mut config = config(true);
    config.queue_count = 2;
    let [left, right] = [0, 1].map(|side| network.open(side, config));
    let (pipeline, records) = pipeline();
    let mut forwarder = Forwarder::new(pipeline, (), left, right).expect("equal queues");
    during(&mut forwarder, false, || {
        network.attach_both();
        network.iperf(false, &["-n", "5M", "-P", "8"]);
    })
    .expect("no error");
    assert_conserved(&forwarder.stats(DeviceSide::Left));
    let records = records.lock().expect("no panic");
    let tcp_count = records.iter().filter(|record| record.key.protocol() == IpProtocol::TCP).count();
    assert_eq!(tcp_count, 9);

    let error = {
        let left =
            TunDevice::open(&format!("{}q", network.devices[0]), TunConfig::default()).expect("a device");
        let right = network.open(1, config);
        Forwarder::new(boxed_pipeline(), (), left, right).expect_err("different numbers of queues")
    };
    assert!(error.to_string().contains("has 2 queues"), "{error}");
}

#[test]
fn a_host_behind_a_tap_device_is_reached() {
    if !is_available() {
        return;
    }
    for offload in [false, true] {
        let network = Network::new(true);
        let left = network.open(0, config(offload));
        let mut tap = config(offload);
        tap.layer = TunLayer::Ethernet;
        let right = network.open(1, tap);
        let host_address = right.hardware_address().expect("a TAP device has one");
        let own_address = [2, 0x96, 0, 0, 0, 1];
        assert_ne!(host_address, own_address);
        let mut table = NeighborTable::new(NeighborConfig::new(own_address)).expect("a valid address");
        let routers = ["10.96.2.254", "fd96:2::fe"];
        for router in routers {
            table.add_local(router.parse().expect("an address")).expect("a unicast address");
        }
        let (pipeline, records) = pipeline();
        let forwarder = Forwarder::new(pipeline, (), left, right).expect("equal queues");
        let mut forwarder = forwarder.neighbors(DeviceSide::Right, table);
        during(&mut forwarder, false, || {
            network.attach_both();
            for (family, router) in ["-4", "-6"].into_iter().zip(routers) {
                let device = &network.devices[0];
                run("ip", &["-n", &network.spaces[0], family, "route", "add", "default", "dev", device]);
                run("ip", &["-n", &network.spaces[1], family, "route", "add", "default", "via", router]);
            }
            for address in network.addresses(1) {
                // The first request waits for the neighbor.
                network.execute(0, &["ping", "-c", "1", "-W", "1", &address]);
                let output = network.execute(0, &["ping", "-c", "3", "-i", "0.2", "-W", "2", &address]);
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
            }
            network.iperf(false, &["-n", "5M"]);
            network.iperf(true, &["-n", "5M"]);
        })
        .expect("no error");
        let [left, right] = [DeviceSide::Left, DeviceSide::Right].map(|side| forwarder.stats(side));
        assert!(left.unresolved_count >= 1 && right.neighbor_count >= 2, "{left:?} {right:?}");
        [left, right].iter().for_each(assert_conserved);
        assert_eq!(left.received.super_packet_count > 0, offload);
        // The kernel announces addresses before the other device is up.
        assert!(left.rejected_count < 10, "{left:?}");
        let records = records.lock().expect("no panic");
        assert!(records.iter().any(|record| record.key.protocol() == IpProtocol::ICMPV6));
        assert_eq!(
            records.iter().filter(|record| record.key.protocol() == IpProtocol::TCP).count(),
            4,
            "a control and a data connection for each IP version"
        );
    }
}

#[test]
fn mixed_devices_need_a_neighbor_table() {
    if !is_available() {
        return;
    }
    let network = Network::new(false);
    let mut tap = config(false);
    tap.layer = TunLayer::Ethernet;
    let (left, right) = (network.open(0, config(false)), network.open(1, tap));
    let mut forwarder = Forwarder::new(pipeline().0, (), left, right).expect("equal queues");
    let error = forwarder.run(&flowgauge::StopHandle::new()).expect_err("a missing table");
    assert!(error.to_string().contains("needs a neighbor table"), "{error}");
}

#[test]
fn a_removed_interface_ends_the_run_with_an_error() {
    if !is_available() {
        return;
    }
    for (channel, is_asynchronous) in [(None, false), (Some(4), false), (None, true), (Some(4), true)] {
        let network = Network::new(false);
        let [left, right] = [0, 1].map(|side| network.open(side, config(true)));
        let forwarder = Forwarder::new(pipeline().0, (), left, right).expect("equal queues");
        let mut forwarder = forwarder.channel(channel);
        let start = Instant::now();
        let error = during(&mut forwarder, is_asynchronous, || {
            network.attach_both();
            thread::sleep(Duration::from_millis(200));
            run("ip", &["-n", &network.spaces[1], "link", "del", &network.devices[1]]);
            thread::sleep(Duration::from_millis(500));
        })
        .expect_err("an error");
        assert_eq!(error.to_string(), format!("{}: the interface was removed", network.devices[1]));
        assert!(start.elapsed() < Duration::from_secs(60));
    }
}

#[test]
fn an_interface_that_is_down_rejects_packets() {
    if !is_available() {
        return;
    }
    let network = Network::new(false);
    let [left, right] = [0, 1].map(|side| network.open(side, config(true)));
    let mut forwarder = Forwarder::new(pipeline().0, (), left, right).expect("equal queues");
    during(&mut forwarder, false, || {
        network.attach(0);
        network.execute(0, &["ping", "-c", "2", "-i", "0.2", "-W", "1", &network.addresses(1)[0]]);
    })
    .expect("no error");
    let stats = forwarder.stats(DeviceSide::Left);
    assert!(stats.rejected_count >= 2, "{stats:?}");
    assert_conserved(&stats);
}

#[test]
fn a_full_channel_drops_and_counts() {
    if !is_available() {
        return;
    }
    let network = Network::new(false);
    let mut small = config(true);
    // A batch is full after one packet.
    small.batch_len = 1;
    let [left, right] = [0, 1].map(|side| network.open(side, small));
    let mut forwarder = Forwarder::new(pipeline().0, (), left, right).expect("equal queues").channel(Some(1));
    during(&mut forwarder, false, || {
        network.attach_both();
        network.iperf(false, &["-u", "-b", "0", "-t", "2", "-l", "1000"]);
    })
    .expect("no error");
    let stats = forwarder.stats(DeviceSide::Left);
    assert!(stats.overflow_count > 0, "{stats:?}");
    assert_conserved(&stats);
}

#[test]
fn oversized_packets_are_counted() {
    if !is_available() {
        return;
    }
    let network = Network::new(false);
    let mut small = config(false);
    small.packet_len_max = 500;
    small.up = true;
    small.mtu = Some(1400);
    let device = TunDevice::open(&network.devices[0], small).expect("a device");
    assert_eq!(device.name(), network.devices[0]);
    let mut source = TunSource::new(device);
    let stop = source.stop_handle();
    let (mut pipeline, records) = pipeline();
    thread::scope(|scope| {
        scope.spawn(|| {
            network.attach(0);
            let address = &network.addresses(1)[0];
            network.execute(0, &["ping", "-c", "1", "-s", "1000", "-W", "1", address]);
            network.execute(0, &["ping", "-c", "2", "-s", "100", "-i", "0.2", "-W", "1", address]);
            stop.stop();
        });
        pipeline.run(&mut source, &RunOptions::default()).expect("no error");
    });
    assert_eq!(source.stats().oversized_frame_count, 1);
    let records = records.lock().expect("no panic");
    let echo = data_flow(&records, IpProtocol::ICMP);
    assert_eq!(echo.forward.counters.octet_count, 2 * 128);
    // An IP packet of version 0.
    let error = source.device().send(&[0; 20]).expect_err("not an IP packet");
    assert!(error.to_string().contains(": cannot send: "), "{error}");
}

#[test]
fn problems_of_opening_are_explained() {
    if !is_available() {
        return;
    }
    let mut existing = TunConfig::default();
    existing.create = false;
    let message = |name: &str, config| TunDevice::open(name, config).expect_err("an error").to_string();
    assert_eq!(message("fg-absent", existing), "fg-absent: there is no interface with this name");
    assert!(message("lo", TunConfig::default()).starts_with("lo: cannot be opened: "));
    assert!(message("a-name-that-is-too-long", TunConfig::default()).contains("too long"));
    let mut without_queue = TunConfig::default();
    without_queue.queue_count = 0;
    assert_eq!(message("fg0", without_queue), "fg0: queue_count must be from 1 to 256, not 0");
    let network = Network::new(false);
    let _open = network.open(0, TunConfig::default());
    let busy = message(&network.devices[0], TunConfig::default());
    assert!(busy.contains("another program uses the interface"), "{busy}");
}

/// Not a test: the part of the next one that runs without the capability.
#[test]
#[ignore = "run by the test of permissions"]
fn open_without_permission() {
    let error = TunDevice::open("fgdenied0", TunConfig::default()).expect_err("no permission");
    println!("<{error}>");
}

#[test]
fn a_missing_permission_is_explained() {
    if !is_available() {
        return;
    }
    let test = std::env::current_exe().expect("the test");
    let output = Command::new("setpriv")
        .args(["--bounding-set=-net_admin"])
        .arg(test)
        .args(["--exact", "open_without_permission", "--ignored", "--nocapture"])
        .output()
        .expect("setpriv");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("<fgdenied0: cannot be opened: Operation not permitted"), "{text}");
    assert!(text.contains("the capability CAP_NET_ADMIN is required>"), "{text}");
}

/// Allocations of the threads that read from each device.
#[derive(Debug)]
struct Allocations {
    packet_count: u64,
    /// Number of allocations at the end of the warm-up.
    warm: u64,
    last: u64,
}

/// Number of packets of the warm-up, during which the batches and the flow table grow.
const WARM_UP: u64 = 500;

/// Maximum number of later allocations: the two lists of packets in a batch double their length when a batch has more
/// packets than all before.
const GROWTH_MAX: u64 = 16;

/// After a warm-up, the threads that read, track and forward packets do not allocate, except that the lists of a batch
/// may still grow.
#[test]
fn forwarding_costs_no_allocation() {
    if !is_available() {
        return;
    }
    for (offload, octets) in [(true, "300M"), (false, "40M")] {
        let network = Network::new(false);
        let threads = Arc::new([const { Mutex::new(Allocations { packet_count: 0, warm: 0, last: 0 }) }; 2]);
        let handler = {
            let threads = Arc::clone(&threads);
            move |_: &mut (), _: &Frame<'_>, from: DeviceSide| {
                let mut thread = threads[from.index()].lock().expect("no panic");
                thread.packet_count += 1;
                thread.last = allocations::count();
                if thread.packet_count <= WARM_UP {
                    thread.warm = thread.last;
                }
                ForwardAction::Pass
            }
        };
        let pipeline = Pipeline::builder().build(()).expect("valid settings");
        let [left, right] = [0, 1].map(|side| network.open(side, config(offload)));
        let mut forwarder = Forwarder::new(pipeline, handler, left, right).expect("equal queues");
        let result = during(&mut forwarder, false, || {
            network.attach_both();
            network.iperf(false, &["-n", octets]);
        });
        result.expect("no error");
        let mut packet_count = 0;
        for thread in threads.iter() {
            let thread = thread.lock().expect("no panic");
            // The thread of the acknowledgments has fewer packets, on a busy machine no more than the warm-up.
            packet_count = thread.packet_count.max(packet_count);
            assert!(thread.last - thread.warm <= GROWTH_MAX, "{thread:?}");
        }
        assert!(packet_count > 2 * WARM_UP, "{packet_count}");
    }
}
