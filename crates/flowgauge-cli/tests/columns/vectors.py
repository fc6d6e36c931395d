"""Compares the features `cic` of flows with those that netflower and cicflowmeter compute of the same capture.

Usage: vectors.py PROGRAM CAPTURE...

Flows are the same if addresses, ports, protocol, the time of the first packet and the number of packets per side are. All
columns of these must be equal. What is absent here is 0 there (E13). The numbers of errors are those of docs/features.md.

The script changes these programs, or converts what they compute:
- both: times before the latest one of the flow are set to it (E17); flows whose source is our responder are reversed (E14);
  lengths are those of the payload, not of IP packets (netflower) or frames (cicflowmeter); a second is added to all times,
  because both take 0 for no time.
- netflower: times are integers of nanoseconds, not floats of seconds; FIN and RST do not end flows, where later segments are
  dropped (E1); packets and octets per subflow are fractions (E6); active periods include the last one and those of one packet
  (E18); a window of -1 is 0 (E8).
- cicflowmeter: padding is no payload (E12); payload is not dissected, because scapy may encode it with another length; flows
  are those of the innermost IPv4 header; they end after 120 s without a packet, and not because of their duration (E2); bulks
  end after a gap of 1 s, not 1 ms; variances have the divisor n-1, not n.

Left out are:
- both: flows with fragments, which belong to their datagram's flow; lengths in flows with a packet that is shorter than its IP
  header states, as it is after truncation.
- netflower: links other than Ethernet; lengths in flows with a UDP length that contradicts the IP header, because only the
  latter counts there; bulks, because they have five packets there, and neither a gap nor payload of the other side ends them.
- cicflowmeter: large captures, because it is slow; flows without a packet of the source, for which it fails; flows with a TCP
  header that exceeds its segment, which has no flags here; times between two packets only, whose statistics are 0; subflows,
  if there are several, because it has totals (E7); the window of the responder, because it is the last one (E8), and that of
  the source after a window of 0; header lengths of TCP, because they are those of IP (E11); CWR, because it is a copy of URG
  (E10); active and idle periods, because lengths of gaps are taken for times (E18); bulks, if packets of both sides have the
  same time, because only later ones end bulks; the text of the first time, which has local time (E16).
"""

import collections
import itertools
import json
import logging
import os
import subprocess
import sys

import cicflowmeter.constants
import cicflowmeter.flow
import cicflowmeter.flow_session
import dpkt
import netflower._capture
import netflower._flow
import netflower._parser
import netflower._session
from cicflowmeter.features.context import PacketDirection
from cicflowmeter.features.flow_bytes import FlowBytes
from cicflowmeter.features.packet_count import PacketCount
from cicflowmeter.features.packet_length import PacketLength
from scapy.all import IP, TCP, UDP, PcapReader, conf

SECOND = 10**9
KEY = ("Src IP", "Src Port", "Dst IP", "Dst Port", "Protocol", "Timestamp")
LARGE_OCTETS = 1 << 23

# Our name of each column. Those of a side have `fwd` or `bwd` in theirs, and `Fwd` or `Bwd` in ours.
BOTH = {
    "protocol": "Protocol",
    "flow_duration": "Flow Duration",
    "flow_byts_s": "Flow Bytes/s",
    "flow_pkts_s": "Flow Packets/s",
    "flow_iat_mean": "Flow IAT Mean",
    "flow_iat_std": "Flow IAT Std",
    "flow_iat_max": "Flow IAT Max",
    "flow_iat_min": "Flow IAT Min",
    "pkt_len_mean": "Packet Length Mean",
    "pkt_len_std": "Packet Length Std",
    "pkt_len_max": "Packet Length Max",
    "pkt_len_min": "Packet Length Min",
    "pkt_len_var": "Packet Length Variance",
    "pkt_size_avg": "Average Packet Size",
    "fin_flag_cnt": "FIN Flag Count",
    "syn_flag_cnt": "SYN Flag Count",
    "rst_flag_cnt": "RST Flag Count",
    "psh_flag_cnt": "PSH Flag Count",
    "ack_flag_cnt": "ACK Flag Count",
    "urg_flag_cnt": "URG Flag Count",
    "ece_flag_cnt": "ECE Flag Count",
    "cwr_flag_count": "CWR Flag Count",
    "down_up_ratio": "Down/Up Ratio",
    "active_mean": "Active Mean",
    "active_std": "Active Std",
    "active_max": "Active Max",
    "active_min": "Active Min",
    "idle_mean": "Idle Mean",
    "idle_std": "Idle Std",
    "idle_max": "Idle Max",
    "idle_min": "Idle Min",
    "tot_fwd_pkts": "Total Fwd Packet",
    "tot_bwd_pkts": "Total Bwd packets",
    "init_fwd_win_byts": "FWD Init Win Bytes",
    "init_bwd_win_byts": "Bwd Init Win Bytes",
}
FORWARD = {
    "totlen_fwd_pkts": "Total Length of Fwd Packet",
    "fwd_pkts_s": "Fwd Packets/s",
    "fwd_pkt_len_mean": "Fwd Packet Length Mean",
    "fwd_pkt_len_std": "Fwd Packet Length Std",
    "fwd_pkt_len_max": "Fwd Packet Length Max",
    "fwd_pkt_len_min": "Fwd Packet Length Min",
    "fwd_seg_size_avg": "Fwd Segment Size Avg",
    "fwd_iat_tot": "Fwd IAT Total",
    "fwd_iat_mean": "Fwd IAT Mean",
    "fwd_iat_std": "Fwd IAT Std",
    "fwd_iat_max": "Fwd IAT Max",
    "fwd_iat_min": "Fwd IAT Min",
    "fwd_psh_flags": "Fwd PSH Flags",
    "fwd_urg_flags": "Fwd URG Flags",
    "fwd_header_len": "Fwd Header Length",
    "fwd_seg_size_min": "Fwd Seg Size Min",
    "fwd_act_data_pkts": "Fwd Act Data Pkts",
    "fwd_byts_b_avg": "Fwd Bytes/Bulk Avg",
    "fwd_pkts_b_avg": "Fwd Packet/Bulk Avg",
    "fwd_blk_rate_avg": "Fwd Bulk Rate Avg",
    "subflow_fwd_pkts": "Subflow Fwd Packets",
    "subflow_fwd_byts": "Subflow Fwd Bytes",
}
BACKWARD = {name.replace("fwd", "bwd"): own.replace("Fwd", "Bwd") for name, own in FORWARD.items()}
COLUMNS = BOTH | FORWARD | BACKWARD


def names(*words):
    return {name for name in COLUMNS if any(word in name for word in words)}


TIMES = names("duration", "_iat_", "active", "idle")
RATES = {"flow_byts_s", "flow_pkts_s", "fwd_pkts_s", "bwd_pkts_s"}
BULKS = names("_b_avg", "_blk_")
WINDOWS = names("_win_")
LENGTHS = names("totlen", "pkt_len", "byts", "size_avg", "act_data") - WINDOWS | BULKS


class NetflowerFlow(netflower._flow.Flow):
    def add_packet(self, direction, packet_len, header_len, payload_len, time, *rest):
        super().add_packet(direction, payload_len, header_len, payload_len, max(time, self.latest_time), *rest)

    def to_dict(self):
        self.active.update(self.last_activity_time - self.last_active_start)
        while self.active.n <= self.idle.n:
            self.active.update(0)
        flow = super().to_dict()
        for side in ("fwd", "bwd"):
            flow[f"subflow_{side}_pkts"] = flow[f"tot_{side}_pkts"] / self.subflow_count
            flow[f"subflow_{side}_byts"] = flow[f"totlen_{side}_pkts"] / self.subflow_count
        return flow


netflower._session.Flow = NetflowerFlow
netflower._session.TCP_FIN = netflower._session.TCP_RST = 0
netflower._flow.ACTIVE_TIMEOUT = 5 * SECOND
netflower._flow.CLUMP_TIMEOUT = SECOND


def netflower_flows(capture):
    flows, odd = [], set()
    session = netflower._session.FlowSession(netflower._capture.CallbackWriter(flows.append), 120 * SECOND)
    with open(capture, "rb") as file:
        reader = dpkt.pcap.UniversalReader(file)
        if reader.datalink() != dpkt.pcap.DLT_EN10MB:
            raise ValueError("the link is not Ethernet")
        for time, octets in reader:
            packet = netflower._parser._parse_packet(octets)
            if packet is None:
                continue
            # The reader has floats for microseconds, and decimals for nanoseconds.
            time = round(time * 10**6) * 1000 if isinstance(time, float) else int(time * SECOND)
            *ends, packet_len, header_len, payload_len, flags, window = packet
            session.process(time + SECOND, *ends, packet_len, header_len, payload_len, flags, window)
            ip = dpkt.ethernet.Ethernet(octets).data
            if ip.len > packet_len or ip.p == 17 and ip.data.ulen != 8 + payload_len:
                odd.add(frozenset(ends))
    session.flush_all()
    for flow in flows:
        flow["start"] = flow["timestamp"] - SECOND
        flow |= {name: flow[name] / 1000 for name in TIMES & flow.keys()}
        flow |= {name: flow[name] * SECOND for name in RATES & flow.keys()}
        flow |= {name: max(flow[name], 0) for name in WINDOWS}
        omitted = set(BULKS)
        if frozenset(flow[name] for name in ("src_ip", "dst_ip", "src_port", "dst_port", "protocol")) in odd:
            omitted |= LENGTHS
        yield {name: value for name, value in flow.items() if name not in omitted}


class CicflowmeterFlow(cicflowmeter.flow.Flow):
    def add_packet(self, packet, direction):
        packet.time = max(packet.time, self.latest_timestamp)
        super().add_packet(packet, direction)


class CicflowmeterSession(cicflowmeter.flow_session.FlowSession):
    def garbage_collect(self, latest_time):
        pass


def payload_lengths(self, side=None):
    return [
        len(PacketCount.get_payload(packet)) for packet, direction in self.flow.packets if side in (None, direction)
    ]


cicflowmeter.constants.CLUMP_TIMEOUT = 1
cicflowmeter.flow_session.EXPIRED_UPDATE = 120
cicflowmeter.flow_session.Flow = CicflowmeterFlow
cicflowmeter.flow_session.output_writer_factory = lambda mode, output: None
FlowBytes.get_bytes = lambda self: sum(payload_lengths(self))
PacketLength.get_packet_length = payload_lengths
TCP.payload_guess = UDP.payload_guess = []
conf.padding = False
logging.getLogger("scapy").setLevel(logging.CRITICAL)


def cicflowmeter_flows(capture):
    if os.path.getsize(capture) > LARGE_OCTETS:
        raise ValueError("the capture is large")
    session = CicflowmeterSession()
    with PcapReader(capture) as reader:
        for frame in reader:
            packet = frame.getlayer(IP)
            while packet and packet.payload.haslayer(IP):
                packet = packet.payload.getlayer(IP)
            if packet and isinstance(packet.payload, (TCP, UDP)):
                packet.time = frame.time + 1
                session.on_packet_received(packet)
    for flow in session.get_flows():
        has_source = any(side is PacketDirection.FORWARD for _, side in flow.packets)
        is_malformed = any(has_false_header(packet) for packet, _ in flow.packets)
        if has_source and not is_malformed:
            yield cicflowmeter_columns(flow)


def has_false_header(packet):
    """Returns whether the length of a TCP header exceeds the segment."""
    return TCP in packet and 4 * (packet.ihl + packet.payload.dataofs) > packet.len > 0


def cicflowmeter_columns(flow):
    columns = flow.get_data()
    packets = [packet for packet, _ in flow.packets]
    columns["start"] = int(packets[0].time * SECOND) - SECOND
    omitted = names("active", "idle", "cwr")
    if any(packet.len > len(packet.original) for packet in packets):
        omitted |= LENGTHS
    steps = list(itertools.pairwise((packet.time, side) for packet, side in flow.packets))
    if any(later[0] - earlier[0] > 1 for earlier, later in steps):
        omitted |= names("subflow")
    if any(later[0] == earlier[0] and later[1] != earlier[1] for earlier, later in steps):
        omitted |= BULKS
    if columns["protocol"] == 6:
        omitted |= {"fwd_header_len", "bwd_header_len", "fwd_seg_size_min"}
        if packets[0].payload.window == 0:
            omitted.add("init_fwd_win_byts")
        if columns["tot_bwd_pkts"] > 1:
            omitted.add("init_bwd_win_byts")
    counts = {"flow_": len(packets), "fwd_": columns["tot_fwd_pkts"], "bwd_": columns["tot_bwd_pkts"]}
    for prefix, count in counts.items():
        if count == 2:
            omitted |= names(prefix + "iat")
        if count > 2:
            columns[prefix + "iat_std"] *= ((count - 1) / (count - 2)) ** 0.5
        if count > 1:
            columns[prefix.removeprefix("flow_") + "pkt_len_std"] *= (count / (count - 1)) ** 0.5
    if len(packets) > 1:
        columns["pkt_len_var"] *= len(packets) / (len(packets) - 1)
    return {name: value for name, value in columns.items() if name not in omitted}


def key(flow):
    return tuple(flow[name] for name in ("src_ip", "src_port", "dst_ip", "dst_port", "protocol", "start"))


def reverse(flow):
    """Returns the same flow with the other side as its source."""
    other = {"fwd": "bwd", "bwd": "fwd", "src": "dst", "dst": "src"}
    flow = {"_".join(other.get(word, word) for word in name.split("_")): value for name, value in flow.items()}
    ratio = flow["down_up_ratio"]
    return flow | {"down_up_ratio": 1 / ratio if ratio else 0}


def is_defined(flow, name):
    """Returns whether a flow of ours has enough packets for a column."""
    counts = {"Fwd": flow["Total Fwd Packet"], "Bwd": flow["Total Bwd packets"]}
    count = counts.get(name[:3], sum(counts.values()))
    if name.endswith("/s"):
        return flow["Flow Duration"] > 0
    if "Packet Length" in name or "Segment" in name or "IAT" in name:
        return count > ("IAT" in name) + name.endswith(("Std", "Variance"))
    return name in flow


def compare(own, flow):
    """Returns the number of columns of two flows that are equal, which is all of them."""
    shared = COLUMNS.keys() & flow.keys()
    for name in shared:
        column, expected = COLUMNS[name], float(flow[name])
        assert (column in own) == is_defined(own, column), f"{column} is {own.get(column)}, not {expected}"
        found = own.get(column, 0)
        is_equal = abs(found - expected) <= 1e-9 * max(1, abs(expected))
        assert is_equal, f"{column} is {found}, not {expected}"
    return len(shared)


def main(program, captures):
    readers = {"netflower": netflower_flows, "cicflowmeter": cicflowmeter_flows}
    counts = {name: collections.Counter() for name in readers}
    for capture in captures:
        arguments = ["flows", capture, "--format", "ndjson", "--features", "cic"]
        arguments += ["--idle-timeout", "120s", "--application", "never"]
        output = subprocess.run([program, *arguments], capture_output=True, check=False)
        ours = {}
        for flow in map(json.loads, output.stdout.splitlines()):
            if flow["fragment_count"] == 0:
                ours[tuple(flow.get(name) for name in KEY)] = flow
        for theirs, read in readers.items():
            count = counts[theirs]
            try:
                flows = list(read(capture))
            except Exception:  # They do not read all formats and links.
                count["refused"] += 1
                continue
            for flow in flows:
                is_reversed = key(flow) not in ours
                if is_reversed:
                    flow = reverse(flow)
                own = ours.get(key(flow))
                packets = (flow["tot_fwd_pkts"], flow["tot_bwd_pkts"])
                if own is None or packets != (own["Total Fwd Packet"], own["Total Bwd packets"]):
                    count["other"] += 1
                    continue
                count["same"] += 1
                count["reversed"] += is_reversed
                try:
                    count["columns"] += compare(own, flow)
                except AssertionError as error:
                    raise AssertionError(f"{theirs}: {capture}: {key(flow)}: {error}") from None
    for theirs, count in counts.items():
        print(theirs, *(f"{name}={count[name]}" for name in ("same", "reversed", "other", "columns", "refused")))
        assert count["columns"] > 50 * count["same"], count
        assert count["refused"] < len(captures) / 2, count
        assert count["other"] <= 5 + 0.08 * count["same"], count


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
