"""Adds a forged segment to a capture of Ethernet: a copy of the second full segment of a web server over IPv4, with other
octets, in front of the original; the first segment follows both, so that they are compared.

    contradict.py CAPTURE OUTPUT
"""

import struct
import sys

capture = open(sys.argv[1], "rb").read()
frames, at = [], 24
while at < len(capture):
    (length,) = struct.unpack_from("<8xI", capture, at)
    frames.append((capture[at : at + 16], capture[at + 16 : at + 16 + length]))
    at += 16 + length


def checksum(octets):
    octets += bytes(len(octets) % 2)
    total = sum(struct.unpack(f">{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", ~total & 0xFFFF)


full = [at for at, (_, frame) in enumerate(frames) if len(frame) == 1514 and frame[34:36] == b"\0\x50"]
first, second = full[:2]
head, original = frames[second]
forged = bytearray(original)
forged[106:122] = bytes(octet ^ 0x20 for octet in forged[106:122])
forged[50:52] = bytes(2)
segment = bytes(forged[34:])
forged[50:52] = checksum(bytes(forged[26:34]) + struct.pack(">BBH", 0, 6, len(segment)) + segment)
time = frames[first][0][:8] + head[8:]
frames[first : first + 1] = [(time, bytes(forged)), (time, original), frames[first]]
del frames[second + 2]
with open(sys.argv[2], "wb") as output:
    output.write(capture[:24] + b"".join(head + frame for head, frame in frames))
