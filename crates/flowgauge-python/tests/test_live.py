"""Flows of interfaces, in a network namespace that the tests create."""

import collections
import ctypes
import datetime
import gc
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import duckdb
import flowgauge
import pandas
import polars
import pyarrow
import pytest

from test_lifetime import open_files, settled, settled_threads, status

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def skip(reason):
    """Skips the test, unless tests with root are required."""
    if os.environ.get("FLOWGAUGE_ROOT_TESTS") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@pytest.fixture
def network():
    """A namespace for this thread and what it starts: ``lo``, and the pair of interfaces ``near`` and ``far``."""
    if shutil.which("ip") is None:
        skip("ip is not installed")
    original = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        if libc.unshare(CLONE_NEWNET) != 0:
            skip(f"no permission to create a network namespace: {os.strerror(ctypes.get_errno())}")
        try:
            # Hosts with IPv6 send packets of their own.
            for kind in ("all", "default"):
                pathlib.Path(f"/proc/sys/net/ipv6/conf/{kind}/disable_ipv6").write_text("1")
            ip("link", "set", "lo", "up")
            ip("link", "add", "near", "mtu", "9000", "type", "veth", "peer", "name", "far", "mtu", "9000")
            ip("link", "set", "near", "up")
            ip("link", "set", "far", "up")
            yield
        finally:
            assert libc.setns(original, CLONE_NEWNET) == 0
    finally:
        os.close(original)


def frames(path):
    """Returns the frames of a pcap file."""
    octets = path.read_bytes()
    order = "<" if octets[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    offset = 24
    while offset < len(octets):
        _, _, length, _ = struct.unpack_from(f"{order}IIII", octets, offset)
        yield octets[offset + 16 : offset + 16 + length]
        offset += 16 + length


def send(interface, found):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((interface, 0))
        for frame in found:
            sender.send(frame)


def datagram(port, payload=b"payload"):
    """Sends a datagram over the loopback interface, to a port where it is received."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", port))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(payload, ("127.0.0.1", port))
        receiver.recv(100)


def stopped(live):
    """Ends a capture, and returns the rows that follow."""
    live.stop()
    return [row for batch in live for row in batch]


FIELDS = """protocol source_address source_port destination_address destination_port packet_count octet_count
    reverse_packet_count reverse_octet_count application conn_state history""".split()


def test_flows_are_those_of_the_same_frames_in_a_file(network, web):
    def counts(rows):
        return collections.Counter(tuple(row[name] for name in FIELDS) for row in rows)

    live = flowgauge.live("far", columns=FIELDS)
    assert live.columns == FIELDS
    send("near", frames(web))
    found = stopped(live)
    expected = counts(flowgauge.flows(web, columns=FIELDS))
    assert sum(expected.values()) == 27
    assert counts(found) == expected and live.drop_count == 0
    assert list(live) == []


def test_conditions_and_features(network, web):
    live = flowgauge.live("far", columns=["destination_port"], where="application = 'http'", filter="tcp")
    other = flowgauge.live("far", features="tcp", application=["tls"])
    send("near", frames(web))
    assert {row["destination_port"] for row in stopped(live)} == {80, 8080}
    rows = stopped(other)
    assert rows and {row["application"] for row in rows} == {"tls"}
    assert set(flowgauge.flows(web, features="tcp").columns) == set(rows[0])


def tagged(tag):
    """Returns a frame with a datagram and VLAN tags."""
    header = bytes(6) + bytes([2, 0, 0, 0, 0, 1])
    address = socket.inet_aton
    udp = struct.pack(">HHHH", 40000, 2000, 12, 0) + b"data"
    packet = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 32, 0, 0, 9, 17, 0, address("192.0.2.1"), address("192.0.2.2")) + udp
    return header + tag + b"\x08\x00" + packet


def test_vlan_tags(network):
    tags = {0: b"", 1: b"\x81\x00\x60\x64", 2: b"\x88\xa8\x00\x07\x81\x00\x00\x64"}
    for expected, tag in ([], tags[0]), ([100], tags[1]), ([7, 100], tags[2]):
        live = flowgauge.live("far", columns=["vlan_ids", "octet_count", "source_port"])
        frame = tagged(tag)
        send("near", [frame])
        rows = stopped(live)
        assert [row["vlan_ids"] or [] for row in rows] == [expected]
        assert rows[0]["source_port"] == 40000 and rows[0]["octet_count"] == len(frame)


CAPTURE = """
import sys, flowgauge
live = flowgauge.live("far", columns=["vlan_ids"])
print("started", flush=True)
sys.stdin.readline()
live.stop()
print([row["vlan_ids"] or [] for batch in live for row in batch])
"""


def test_valgrind_finds_no_error_in_the_module(network, web, tmp_path):
    """The interpreter has errors of its own, so that only those with the module in their stack count."""
    if shutil.which("valgrind") is None:
        skip("valgrind is not installed")
    log = tmp_path / "valgrind.txt"
    command = ["valgrind", "--error-limit=no", f"--log-file={log}", sys.executable, "-c", CAPTURE]
    environment = {**os.environ, "PYTHONMALLOC": "malloc"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout.readline() == "started\n"
        send("near", frames(web))
        send("near", [tagged(b"\x81\x00\x60\x64")])
        output, _ = process.communicate("stop\n", timeout=300)
        assert process.returncode == 0
    assert "ERROR SUMMARY" in log.read_text()
    assert "_flowgauge" not in log.read_text()
    assert output.count("[100]") == 1 and output.count("[]") == 27


def test_the_loopback_interface_has_each_frame_once(network):
    with flowgauge.live("lo", columns=["packet_count", "reverse_packet_count"]) as live:
        datagram(4000)
        assert stopped(live) == [{"packet_count": 1, "reverse_packet_count": 0}]


def test_records_are_delivered_in_time(network):
    # The flow has ended after 0.2 s, and its record waits for 0.1 s.
    with flowgauge.live("lo", idle_timeout=0.2, interval=0.1, columns=["flow_end_reason", "packet_count"]) as live:
        for _ in range(2):
            began = time.monotonic()
            datagram(4000)
            batch = next(live)
            print(f"a flow that ended arrived after {time.monotonic() - began:.2f} s")
            assert list(batch) == [{"flow_end_reason": "idle_timeout", "packet_count": 1}]


def test_ongoing_flows_are_delivered_at_the_active_timeout(network):
    with flowgauge.live("lo", active_timeout=0.2, interval=0, columns=["flow_end_reason", "sequence_number"]) as live:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            ended = threading.Event()

            def send_all():
                while not ended.wait(0.02):
                    sender.sendto(b"payload", ("127.0.0.1", 4000))

            # The socket belongs to the namespace, and the thread uses it.
            thread = threading.Thread(target=send_all)
            thread.start()
            try:
                rows = [row for _ in range(4) for row in next(live)]
            finally:
                ended.set()
                thread.join()
    reasons = {row["flow_end_reason"] for row in rows if row["sequence_number"] is not None}
    assert "active_timeout" in reasons
    assert max(row["sequence_number"] or 0 for row in rows) >= 1


def test_all_readers_read_batches_and_the_rest(network, web):
    live = flowgauge.live("far", interval=0, idle_timeout=0.1, columns=["packet_count", "reverse_packet_count", "start"])
    send("near", frames(web))
    batch = next(live)
    rows = list(batch)
    assert len(batch) == len(rows) > 0 and batch.columns == list(rows[0])
    counts = [row["packet_count"] for row in rows]
    assert pyarrow.record_batch(batch).column("packet_count").to_pylist() == counts
    assert pyarrow.table(batch).num_rows == len(rows)
    assert polars.DataFrame(batch)["packet_count"].to_list() == counts
    assert pandas.DataFrame.from_arrow(batch)["packet_count"].tolist() == counts
    assert duckdb.sql("select sum(packet_count) from batch").fetchall() == [(sum(counts),)]
    live.stop()
    rest = pyarrow.RecordBatchReader.from_stream(live).read_all().to_pylist()
    assert list(live) == []

    # Flows are divided where the machine paused.
    def packet_count(rows):
        return sum(row["packet_count"] + row["reverse_packet_count"] for row in rows)

    assert packet_count(rows) + packet_count(rest) == packet_count(flowgauge.flows(web))


def test_a_capture_ends_after_its_duration(network):
    began = time.monotonic()
    live = flowgauge.live("lo", duration=0.3)
    datagram(4000)
    rows = [row for batch in live for row in batch]
    assert len(rows) == 1 and rows[0]["file"] is None and rows[0]["flow_end_reason"] == "forced_end"
    assert time.monotonic() - began >= 0.3


def test_the_limit_ends_a_capture(network):
    live = flowgauge.live("lo", limit=2, idle_timeout=0.05, interval=0, columns=["destination_port"])
    for port in range(4000, 4005):
        datagram(port)
    assert len([row for batch in live for row in batch]) == 2


def test_a_capture_ends_when_it_is_closed_or_dropped(network):
    def captured(kind):
        live = flowgauge.live("lo", idle_timeout=0.01, interval=0)
        if kind == "with":
            with live:
                pass
            assert list(live) == []
        elif kind == "read":
            datagram(4000)
            assert len(next(live)) == 1
        elif kind == "reader":
            datagram(4000)
            pyarrow.RecordBatchReader.from_stream(live)
            with pytest.raises(ValueError, match="closed"):
                pyarrow.table(live)

    captured("read")
    gc.collect()
    threads, files = settled_threads(threading.active_count() + 8), open_files()
    for kind in ["with", "drop", "read", "reader"] * 5:
        captured(kind)
        gc.collect()
        assert settled_threads(threads) <= threads
        assert settled(open_files, files) <= files
    assert status("Threads") <= threads


def test_closing_ends_the_wait_of_another_thread(network):
    live = flowgauge.live("lo")
    found = []
    thread = threading.Thread(target=lambda: found.extend(live))
    thread.start()
    time.sleep(0.1)
    with pytest.raises(ValueError, match="another thread"):
        next(live)
    began = time.monotonic()
    live.close()
    thread.join(timeout=10)
    print(f"ended after {(time.monotonic() - began) * 1e3:.0f} ms")
    assert not thread.is_alive() and found == []


INTERRUPTED = """
import signal, time
import flowgauge
signal.signal(signal.SIGINT, signal.default_int_handler)
live = flowgauge.live("lo")
print("ready", flush=True)
try:
    for batch in live:
        pass
except KeyboardInterrupt:
    print(time.monotonic(), flush=True)
"""


def test_interrupt_while_no_flow_ends(network):
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.3)
            sent = time.monotonic()
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=10)
        finally:
            process.kill()
    assert process.returncode == 0
    print(f"KeyboardInterrupt after {(float(output) - sent) * 1e3:.0f} ms")


def test_interrupt_of_a_reader_leaves_the_capture(network):
    with flowgauge.live("lo") as live:
        # A program that was started in the background ignores the signal.
        previous = signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
        try:
            with pytest.raises(KeyboardInterrupt):
                pyarrow.RecordBatchReader.from_stream(live)
        finally:
            signal.signal(signal.SIGINT, previous)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"later", ("127.0.0.1", 9))
        time.sleep(0.3)
        live.stop()
        assert sum(1 for batch in live for _ in batch) >= 1


def test_an_interface_that_is_removed(network):
    live = flowgauge.live("far")
    ip("link", "del", "near")
    with pytest.raises(flowgauge.Error, match="far: "):
        list(live)
    with pytest.raises(flowgauge.Error, match="far: No such device"):
        flowgauge.live("far")


def test_without_permission():
    code = "import flowgauge\ntry: flowgauge.live('lo')\nexcept PermissionError as error: print(type(error), error)"
    if os.geteuid() == 0:
        # Without capabilities; the package must be readable for the user.
        code = f"import flowgauge, os\nos.setgroups([]); os.setgid(65534); os.setuid(65534)\n{code}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "MissingPermissionError" in run.stdout and "lo: no permission to capture" in run.stdout, run


def test_an_interval_of_zero():
    for interval in (0, 0.0, datetime.timedelta(0)):
        assert flowgauge._arguments.interval("interval", interval) == 0


def test_invalid_arguments():
    for options, exception in [
        ({"where": "nonsense > 1"}, ValueError),
        ({"interval": -1}, ValueError),
        ({"duration": 0}, ValueError),
        ({"interval": "1s"}, TypeError),
        ({"joined": True}, TypeError),
    ]:
        with pytest.raises(exception):
            flowgauge.live("lo", **options)
    for interface in (None, 1, b"lo"):
        with pytest.raises(TypeError):
            flowgauge.live(interface)
    for interface in ("", "no\0interface", "nonsense"):
        with pytest.raises(flowgauge.Error):
            flowgauge.live(interface)
