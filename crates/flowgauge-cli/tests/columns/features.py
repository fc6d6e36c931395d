"""Compares features of flows with those that NFStream computes of the same capture.

Usage: features.py PROGRAM CAPTURE...

Flows are the same if addresses, ports, protocol, the millisecond of the first packet and the number of packets are. All
columns of these must be equal, but for:
- MAC addresses: NFStream has those of the first packet, and no sender in a Linux cooked capture; ours are those of the record,
  where a later packet may have another one.
- vlan_id: NFStream has the innermost VLAN id.
- lengths of protocols other than TCP, UDP and ICMP: NFStream counts no payload of these.
Captures whose length fields contradict each other are left out, because NFStream believes these.
"""

import collections
import ipaddress
import json
import subprocess
import sys

from nfstream import NFStreamer

HAVE_PAYLOAD = {1, 6, 17, 58}
OTHER = {"id", "src_mac", "src_oui", "dst_mac", "dst_oui", "vlan_id"}


def key(flow):
    source, destination = (str(ipaddress.ip_address(flow[name])) for name in ("src_ip", "dst_ip"))
    names = ("src_port", "dst_port", "protocol", "bidirectional_first_seen_ms", "bidirectional_packets")
    return (source, destination, *(flow[name] for name in names))


def main(program, captures):
    counts = collections.Counter()
    for capture in captures:
        arguments = ["flows", capture, "--format", "ndjson", "--features", "nfstream=payload"]
        arguments += ["--idle-timeout", "120s", "--application", "never"]
        output = subprocess.run([program, *arguments], capture_output=True, check=False)
        if b"contradicts" in output.stderr or b"contradict " in output.stderr:
            counts["contradictory"] += 1
            continue
        ours = {key(flow): flow for flow in map(json.loads, output.stdout.splitlines())}
        try:
            theirs = NFStreamer(
                source=capture, statistical_analysis=True, accounting_mode=3, idle_timeout=120,
                active_timeout=10**8, n_dissections=0, n_meters=1,
            )  # fmt: skip
            theirs = [{name: getattr(flow, name) for name in flow.keys()} for flow in theirs]
        except Exception:  # NFStream refuses some captures.
            counts["refused"] += 1
            continue
        for flow in theirs:
            own = ours.get(key(flow))
            if own is None:
                counts["other"] += 1
                continue
            counts["same"] += 1
            for name, expected in flow.items():
                is_length = name.endswith(("_ps", "_bytes"))
                if name in OTHER or name not in own or is_length and own["protocol"] not in HAVE_PAYLOAD:
                    continue
                found = own[name]
                if name.endswith("_ip"):
                    found, expected = ipaddress.ip_address(found), ipaddress.ip_address(expected)
                is_equal = found == expected
                if isinstance(expected, float):
                    is_equal = abs(found - expected) <= 1e-9 * max(1e3, abs(expected))
                assert is_equal, f"{capture}: {key(flow)}: {name} is {found}, not {expected}"
                counts["columns"] += 1
    assert counts["columns"] > 50 * counts["same"], counts
    assert counts["other"] <= 5 + 0.08 * counts["same"], counts
    print(*(f"{name}={counts[name]}" for name in ("same", "other", "columns", "refused", "contradictory")))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
