"""Streams that are interrupted, or dropped before their end."""

import gc
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import flowgauge
import pyarrow
import pytest

linux = pytest.mark.skipif(sys.platform != "linux", reason="counts threads and memory in /proc")


def status(name):
    """Returns a number of the kernel's description of the process."""
    text = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)[1])


def settled(count, most):
    """Waits until a count is at most `most`, and returns it."""
    end = time.monotonic() + 10
    while count() > most and time.monotonic() < end:
        time.sleep(0.01)
    return count()


def settled_threads(most):
    """Waits until at most this number of threads is left, and returns their number."""
    return settled(lambda: status("Threads"), most)


def open_files():
    return len(os.listdir("/proc/self/fd"))


def half_read(kind, path, octets):
    if kind == "rows":
        rows = iter(flowgauge.packets(path, batch_size=1))
        next(rows)
    elif kind == "octets":
        rows = iter(flowgauge.packets(octets, batch_size=1))
        next(rows)
    elif kind == "file object":
        rows = iter(flowgauge.packets(open(path, "rb"), batch_size=1))
        next(rows)
    elif kind == "reader":
        reader = pyarrow.RecordBatchReader.from_stream(flowgauge.packets(path, batch_size=1))
        reader.read_next_batch()
    else:
        # A capsule that no consumer took.
        flowgauge.packets(path, batch_size=1).__arrow_c_stream__()


@linux
@pytest.mark.parametrize("kind", ["rows", "octets", "file object", "reader", "capsule"])
def test_1000_streams_dropped_half_read(kind, web):
    octets = web.read_bytes()
    for _ in range(50):
        half_read(kind, web, octets)
    gc.collect()
    before = settled_threads(threading.active_count() + 8)
    memory = status("VmRSS")
    files = open_files()
    most = 0
    for _ in range(1000):
        half_read(kind, web, octets)
        most = max(most, status("Threads"))
    gc.collect()
    after = settled_threads(before)
    growth = (status("VmRSS") - memory) / 1024
    print(f"{kind}: threads {before} before, {most} at most, {after} after; memory grew by {growth:.1f} MiB")
    assert after <= before
    # Threads of file objects end by themselves, the others before the stream is dropped.
    assert most <= before + (64 if kind == "file object" else 2)
    assert settled(open_files, files) <= files
    assert growth < 64


def test_a_consumer_outlives_its_stream(web):
    rows = iter(flowgauge.packets(web, batch_size=1))
    reader = pyarrow.RecordBatchReader.from_stream(flowgauge.packets(web, batch_size=1))
    gc.collect()
    count = len(list(flowgauge.packets(web)))
    assert sum(1 for _ in rows) == reader.read_all().num_rows == count


INTERRUPTED = """
import signal, sys, time
import flowgauge
signal.signal(signal.SIGINT, signal.default_int_handler)
source = sys.argv[1]
if sys.argv[2] == "object":
    source = open(source, "rb", buffering=0)
if sys.argv[2] == "table":
    print("ready", flush=True)
    try:
        flowgauge.sql("SELECT count(*) FROM p", tables={"p": flowgauge.packets(source)})
    except KeyboardInterrupt:
        print(time.monotonic(), flush=True)
    sys.exit()
if sys.argv[2] == "query":
    stream = flowgauge.sql(f"SELECT count(*) FROM packets('{source}')")
else:
    stream = flowgauge.packets(source)
print("ready", flush=True)
try:
    if sys.argv[3] == "rows":
        for row in stream:
            pass
    else:
        import pyarrow
        pyarrow.table(stream)
except KeyboardInterrupt:
    print(time.monotonic(), flush=True)
"""


def check_interrupt(tmp_path, source, consumer):
    """SIGINT ends a consumer that waits for a pipe without data."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    arguments = [sys.executable, "-c", INTERRUPTED, str(fifo), source, consumer]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            # A writer, so that the pipe does not end.
            with open(fifo, "wb"):
                time.sleep(0.5)
                sent = time.monotonic()
                process.send_signal(signal.SIGINT)
                # Usually 60 ms. A machine with other load is slower.
                output, _ = process.communicate(timeout=10)
                ended = time.monotonic()
        finally:
            process.kill()
    assert process.returncode == 0
    milliseconds = [round((time - sent) * 1e3) for time in (float(output), ended)]
    print(f"{consumer}: KeyboardInterrupt and end after {milliseconds} ms")


pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


@pipes
@pytest.mark.parametrize("consumer", ["rows", "pyarrow"])
def test_interrupt_while_a_pipe_has_no_data(tmp_path, consumer):
    check_interrupt(tmp_path, "path", consumer)


def check_other_threads(tmp_path, open_stream):
    """Other threads run while a stream waits for a pipe without data."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    stream = open_stream(fifo)
    failures = []

    def read():
        try:
            list(stream)
        except ValueError as error:
            failures.append(str(error))

    thread = threading.Thread(target=read)
    thread.start()
    count = 0
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        count += 1
    assert count > 1000
    stream.close()
    thread.join(timeout=10)
    assert not thread.is_alive() and failures == ["the stream is closed"]


@pipes
def test_other_threads_run_while_a_stream_waits(tmp_path):
    check_other_threads(tmp_path, flowgauge.packets)


ATTACHED = """
import ctypes, io, os, signal, sys, threading, time
import flowgauge
signal.signal(signal.SIGINT, signal.default_int_handler)
path, kind, fifo = sys.argv[1:]
octets = open(path, "rb").read()
ended = threading.Event()
def write():
    with open(fifo, "wb", buffering=0) as pipe:
        pipe.write(octets[:60_000])
        # The consumer waits now, and this thread needs Python to continue.
        time.sleep(0.3)
        if kind == "signal":
            signal.raise_signal(signal.SIGINT)
            ended.wait()
            return
        pipe.write(octets[60_000:])
if kind != "object":
    os.mkfifo(fifo)
    threading.Thread(target=write).start()
source = io.BytesIO(octets) if kind == "object" else fifo
capsule = flowgauge.packets(source, batch_size=1).__arrow_c_stream__()
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
stream = pointer(capsule, b"arrow_array_stream")
# struct ArrowArrayStream: get_schema, get_next, get_last_error, release, private_data
functions = (ctypes.c_void_p * 5).from_address(stream)
# Unlike CFUNCTYPE, PYFUNCTYPE does not detach the thread from Python.
get_next = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(functions[1])
get_last_error = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(functions[2])
count = 0
while True:
    # struct ArrowArray: length, ..., release, private_data
    array = (ctypes.c_void_p * 10)()
    if get_next(stream, ctypes.addressof(array)) != 0:
        print(get_last_error(stream).decode())
        break
    if not array[8]:
        print(count)
        break
    count += array[0]
    ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(array[8])(ctypes.addressof(array))
ended.set()
"""


def child(program, *arguments):
    """Returns what a program writes, which must end within a minute."""
    run = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, timeout=60
    )
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


@pipes
@pytest.mark.parametrize("kind", ["object", "pipe", "signal"])
def test_consumers_that_wait_attached_to_python(tmp_path, web, kind):
    """They would otherwise block the reads of a file object, a thread that writes to a pipe, and signals."""
    output = child(ATTACHED, web, kind, tmp_path / "fifo")
    if kind == "signal":
        assert "interrupted: KeyboardInterrupt" in output
    else:
        assert int(output) == len(list(flowgauge.packets(web)))


FORKED = """
import os, sys
import flowgauge, pyarrow
reader = pyarrow.RecordBatchReader.from_stream(flowgauge.packets(sys.argv[1], batch_size=1))
reader.read_next_batch()
rows = iter(flowgauge.packets(sys.argv[1], batch_size=1))
next(rows)
pid = os.fork()
if pid == 0:
    count = 0
    for read in (reader.read_next_batch, lambda: next(rows)):
        try:
            read()
        except (OSError, ValueError) as error:
            count += "another process" in str(error)
    del reader, rows
    # A stream of the child itself.
    count += len(list(flowgauge.packets(sys.argv[1]))) > 0
    os._exit(0 if count == 3 else 1)
print(os.waitpid(pid, 0)[1], reader.read_all().num_rows == len(list(rows)))
"""


@linux
def test_a_fork_does_not_use_the_thread_of_its_parent(web):
    assert child(FORKED, web) == "0 True\n"


LEFT = """
import sys, time
import flowgauge
octets = open(sys.argv[1], "rb").read()
class Endless:
    left = octets
    def read(self, count):
        found, self.left = self.left[:count], self.left[count:] or octets[24:]
        return found
rows = iter(flowgauge.flows(Endless()))
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize("seconds", [0, 0.003, 0.01, 0.05, 0.1])
def test_the_interpreter_ends_while_a_file_object_is_read(web, seconds):
    child(LEFT, web, seconds)
