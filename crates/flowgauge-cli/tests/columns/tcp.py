"""Compares features of TCP connections with what tshark computes of the same segments.

Usage: tcp.py PROGRAM CAPTURE...

Connections are the same if addresses, ports, the time of the first packet and the number of packets are. Equal must be:
- the options of SYNs: maximum segment size, window scale, and kinds;
- the sum of all kinds of retransmissions and the number of retransmissions of the record, which has other tests;
- in connections without lost, late and repeated segments, whose times do not step back: the number of keep-alives, and number,
  least and greatest of the times from segments to their acknowledgments.
Different are there, and left out:
- times in connections with keep-alives, which tshark takes for segments of their own;
- acknowledgments at the same time as their segment, which tshark leaves out.
At most 2 % of the numbers of duplicate acknowledgments differ: those without outstanding octets count in tshark only.
"""

import collections
import json
import subprocess
import sys

FIELDS = """tcp.stream frame.time_epoch ip.src ipv6.src ip.dst ipv6.dst tcp.srcport tcp.dstport tcp.flags
tcp.options.mss_val tcp.options.wscale.shift tcp.option_kind""".split()
ANALYSIS = """ack_rtt keep_alive duplicate_ack retransmission out_of_order lost_segment ack_lost_segment fast_retransmission
spurious_retransmission reused_ports""".split()
KINDS = ("spurious", "fast", "timeout", "other")


def nanoseconds(text):
    seconds, _, fraction = text.partition(".")
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9])


def connections(capture):
    """Returns the segments of each connection that has one IP header per frame."""
    names = FIELDS + ["tcp.analysis." + name for name in ANALYSIS]
    command = ["tshark", "-r", capture, "-Y", "tcp", "-T", "fields"]
    command += [word for name in names for word in ("-e", name)]
    output = subprocess.run(command, capture_output=True, text=True, check=False)
    streams = collections.defaultdict(list)
    for line in output.stdout.splitlines():
        segment = dict(zip(FIELDS + ANALYSIS, line.split("\t"), strict=False))
        addresses = segment["ip.src"] + segment["ipv6.src"]
        if "," not in segment["tcp.stream"] + segment["tcp.srcport"] + addresses and not (
            segment["ip.src"] and segment["ipv6.src"]
        ):
            streams[segment["tcp.stream"]].append(segment)
    return streams.values()


def end(segment, kind):
    port = {"src": "tcp.srcport", "dst": "tcp.dstport"}[kind]
    return segment["ip." + kind] or segment["ipv6." + kind], int(segment[port])


def flows(program, capture):
    """Returns the flows of a capture by their ends and start, each with its source."""
    command = [program, "flows", capture, "--format", "ndjson", "--features", "tcp", "--filter", "tcp"]
    output = subprocess.run([*command, "--application", "never"], capture_output=True, check=False)
    found = {}
    for flow in map(json.loads, output.stdout.splitlines()):
        source, destination = ((flow[side + "_address"], flow[side + "_port"]) for side in ("source", "destination"))
        found[frozenset([source, destination]), flow["start"]] = (flow, source)
    return found


def expected_of_syn(syn):
    kinds = [int(kind) for kind in syn["tcp.option_kind"].split(",") if kind]
    number = {"mss": "tcp.options.mss_val", "window_scale": "tcp.options.wscale.shift"}
    values = {name: int(syn[field]) for name, field in number.items() if syn[field] and "," not in syn[field]}
    return {"mss": None, "window_scale": None, **values, "tcp_options": [kind for kind in kinds if kind != 0]}


def compare(flow, source, segments, counts):
    """Yields the name of each value that differs, the value, and the expected one."""
    times = [nanoseconds(segment["frame.time_epoch"]) for segment in segments]
    disorder = [segment[name] for segment in segments for name in ANALYSIS[3:]]
    is_ordered = not any(disorder) and times == sorted(times)
    has_keep_alives = any(segment["keep_alive"] for segment in segments)
    for prefix in ("", "reverse_"):
        sent, answers = [], []
        for segment in segments:
            is_own = (end(segment, "src") == source) == (prefix == "")
            (sent if is_own else answers).append(segment)
        expected = {}
        syns = [segment for segment in sent if int(segment["tcp.flags"], 16) & 2]
        if syns:
            expected.update(expected_of_syn(syns[0]))
        total = sum(flow[f"{prefix}{kind}_retransmitted_count"] for kind in KINDS)
        counts["totals"] += 1
        if total != flow[prefix + "retransmitted_count"]:
            counts["other totals"] += 1
        if is_ordered:
            expected["keep_alive_count"] = sum(bool(segment["keep_alive"]) for segment in sent)
            copies = sum(bool(segment["duplicate_ack"]) for segment in sent)
            counts["duplicates"] += 1
            counts["other duplicates"] += copies != flow[prefix + "duplicate_ack_count"]
        if is_ordered and not has_keep_alives and flow.get(prefix + "ack_rtt_min") != 0:
            delays = [nanoseconds(segment["ack_rtt"]) for segment in answers if segment["ack_rtt"]]
            expected["ack_rtt_count"] = len(delays)
            if delays:
                expected.update(ack_rtt_min=min(delays), ack_rtt_max=max(delays))
        for name, value in expected.items():
            counts["columns"] += 1
            if flow.get(prefix + name) != value:
                yield prefix + name, flow.get(prefix + name), value


def main(program, captures):
    counts = collections.Counter()
    for capture in captures:
        own = flows(program, capture)
        for segments in connections(capture) if own else ():
            first = segments[0]
            ends = frozenset([end(first, "src"), end(first, "dst")])
            flow, source = own.get((ends, nanoseconds(first["frame.time_epoch"])), (None, None))
            is_same = flow and flow["packet_count"] + flow["reverse_packet_count"] == len(segments)
            # A flow whose TCP headers are all truncated has no features.
            if not is_same or "keep_alive_count" not in flow:
                counts["other"] += 1
                continue
            counts["same"] += 1
            for name, found, expected in compare(flow, source, segments, counts):
                counts["different"] += 1
                print(f"{capture}: {sorted(ends)}: {name} is {found}, not {expected}")
    print(*(f"{name}={count}" for name, count in counts.items()))
    assert counts["columns"] > 3 * counts["same"] > 60, counts
    assert counts["other"] <= 5 + 0.1 * counts["same"], counts
    assert counts["different"] <= 0.005 * counts["columns"], counts
    assert counts["other totals"] <= 0.02 * counts["totals"], counts
    assert counts["other duplicates"] <= 0.02 * counts["duplicates"], counts


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
