"""Prints the flow records of `flowgauge publish` with any ZeroMQ library: pip install pyzmq"""
import ipaddress, struct, sys, zmq

socket = zmq.Context().socket(zmq.SUB)
socket.connect(sys.argv[1])
socket.subscribe(b"flow.end")
is_last = False
while not is_last:
    topic, header, payload = socket.recv_multipart()
    version, encoding, is_last, count, stream, sequence, position = struct.unpack(">BBBxIQQQ", header)
    for flags, protocol, outcome, duration, packets, reverse_packets, octets, reverse_octets, start_ns, source_port, \
            port, source, destination in struct.iter_unpack(">BBB3s3s3sIIQHH16s16s", payload):
        source, destination = (ipaddress.ip_address(a if flags & 1 else a[12:]) for a in (source, destination))
        print(topic.decode(), source, source_port, destination, port, int.from_bytes(packets, "big"), octets)
