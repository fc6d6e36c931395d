"""Writes each received record with its position, and at the end the number of lost records.

Arguments: endpoint, topic, high-water mark.
"""
import ipaddress
import struct
import sys

import zmq

endpoint, topic, high_water_mark = sys.argv[1:]
socket = zmq.Context().socket(zmq.SUB)
socket.setsockopt(zmq.RCVHWM, int(high_water_mark))
socket.setsockopt(zmq.RCVTIMEO, 60_000)
socket.connect(endpoint)
socket.subscribe(topic.encode())
received = lost = 0
expected = {}
while True:
    name, header, payload = socket.recv_multipart()
    version, encoding, is_last, count, stream, sequence, position = struct.unpack(">BBBxIQQQ", header)
    assert version == 1
    lost += sequence - expected.get(stream, 0)
    expected[stream] = sequence + count
    received += count
    if encoding == 1:
        assert len(payload) == 64 * count
        lines = []
        for row in struct.iter_unpack(">BBB3s3s3sIIQHH16s16s", payload):
            flags, _, _, _, packets, _, octets, _, start, source_port, port, source, destination = row
            source, destination = (ipaddress.ip_address(a if flags & 1 else a[12:]) for a in (source, destination))
            packets = int.from_bytes(packets, "big")
            lines.append(f"{position},{start},{source},{source_port},{destination},{port},{packets},{octets}\n")
            position += 1
        sys.stdout.write("".join(lines))
    else:
        assert payload.count(b"\n") == count
    sys.stdout.flush()
    if is_last:
        print(f"end,{received},{lost}", flush=True)
        break
