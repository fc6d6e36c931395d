"""Errors, warnings and the end of streams."""

import errno
import io
import pickle

import flowgauge
import pyarrow
import pytest


def test_missing_files(tmp_path):
    path = tmp_path / "missing.pcap"
    for function in (lambda: flowgauge.flows(path), lambda: flowgauge.flows([str(path)])):
        with pytest.raises(FileNotFoundError) as raised:
            function()
        error = raised.value
        assert isinstance(error, flowgauge.Error) and isinstance(error, OSError)
        assert error.filename == str(path) and error.errno == errno.ENOENT
        assert str(path) in str(error) and "No such file" in str(error)
    with pytest.raises(FileNotFoundError, match="no file matches"):
        flowgauge.flows(str(tmp_path / "*.pcap"))


def test_files_that_are_not_captures(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("a text\n" * 10)
    for consume in (list, pyarrow.table):
        with pytest.raises(flowgauge.Error) as raised:
            consume(flowgauge.flows(path))
        assert raised.value.filename == str(path)
        assert str(raised.value) == f"{path}: is not a pcap or pcapng capture: it looks like text"
    with pytest.raises(flowgauge.Error, match="directory"):
        list(flowgauge.flows(tmp_path))
    with pytest.raises(flowgauge.Error, match="empty"):
        list(flowgauge.packets(b""))


def test_records_without_packets(tmp_path):
    path = tmp_path / "flows.ndjson"
    path.write_text('{"source_address":"192.0.2.1","destination_address":"192.0.2.2","packet_count":3}\nnothing\n')
    stream = flowgauge.flows(path, columns=["packet_count", "octet_count", "file"])
    assert list(stream) == [{"packet_count": 3, "octet_count": None, "file": str(path)}]
    assert list(flowgauge.flows(path.read_bytes(), columns=["packet_count"])) == [{"packet_count": 3}]
    for consume, message in (
        (lambda: list(flowgauge.packets(path)), "have no packets"),
        (lambda: list(flowgauge.flows(path, features="cic")), "features applies to"),
    ):
        with pytest.raises(flowgauge.Error, match=message) as raised:
            consume()
        assert raised.value.filename == str(path)
    assert list(flowgauge.flows(b"")) == []


def test_a_later_error_reaches_a_consumer_in_c(tmp_path, web):
    path = tmp_path / "notes.txt"
    path.write_text("a text\n" * 10)
    stream = flowgauge.flows([web, path], batch_size=5)
    reader = pyarrow.RecordBatchReader.from_stream(stream)
    with pytest.raises(OSError, match="notes.txt: is not a pcap"):
        reader.read_all()
    seen = []
    with pytest.raises(flowgauge.Error, match="notes.txt"):
        for row in stream:
            seen.append(row)
    assert len(seen) == 25


def test_errors_can_be_pickled(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        flowgauge.flows(tmp_path / "missing.pcap")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (type(copy), str(copy), copy.filename, copy.errno) == (
        type(raised.value),
        str(raised.value),
        raised.value.filename,
        errno.ENOENT,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["start", "nonsense"]}, "unknown column: \"nonsense\"; known are protocol"),
        ({"columns": ["start", "start"]}, "\"start\" is repeated"),
        ({"columns": []}, "at least one"),
        ({"filter": "tcp porridge 80"}, "filter: "),
        ({"features": "nonsense"}, "features: "),
        ({"tunnels": "nonsense"}, "tunnels must be"),
        ({"addresses": "nonsense"}, "addresses must be"),
        ({"limit": -1}, "limit must be at least 0"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"memory": 0}, "memory must be at least 1"),
        ({"active_timeout": 0}, "active_timeout must be greater than zero"),
        ({"idle_timeout": float("nan")}, "idle_timeout must be greater than zero"),
        ({"idle_timeout": 1e30}, "idle_timeout must be greater than zero"),
    ],
)
def test_invalid_values(web, options, message):
    with pytest.raises(ValueError) as raised:
        flowgauge.flows(web, **options)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "options",
    [
        {"columns": "start"},
        {"columns": [1]},
        {"filter": 80},
        {"features": 1},
        {"limit": 1.5},
        {"idle_timeout": "1s"},
        {"nonsense": 1},
    ],
)
def test_invalid_types(web, options):
    with pytest.raises(TypeError):
        flowgauge.flows(web, **options)


def test_invalid_captures(web):
    for captures in (None, 5, [5], [web, io.BytesIO()]):
        with pytest.raises(TypeError):
            flowgauge.flows(captures)
    with pytest.raises(TypeError, match="binary mode"), open(web, encoding="latin-1") as file:
        flowgauge.flows(file)
    with pytest.raises(ValueError, match="empty"):
        flowgauge.flows([])


def test_unknown_kinds(web):
    with pytest.raises(ValueError, match="nonsense.*known are .*dns"):
        flowgauge.messages("nonsense", web)
    with pytest.raises(ValueError, match="nonsense.*known are .*http"):
        flowgauge.transactions("nonsense", web)
    with pytest.raises(ValueError, match="whole flows"):
        flowgauge.packets(web, filter="src port 80")
    with pytest.raises(ValueError, match="whole flows"):
        flowgauge.findings(web, filter="src port 80")
    with pytest.raises(ValueError, match='unknown column: "file".*evidence'):
        flowgauge.findings(web, columns=["file"])
    with pytest.raises(TypeError):
        flowgauge.findings(web, joined=False)


def test_memory_that_is_too_small(web):
    with pytest.raises(flowgauge.Error, match="bytes of memory") as raised:
        list(flowgauge.flows(web, memory=1))
    assert raised.value.filename == str(web)


def test_damage_is_a_warning(web):
    octets = web.read_bytes()
    stream = flowgauge.packets(octets[:-10])
    assert stream.warnings == []
    found = len(list(stream))
    assert found == len(list(flowgauge.packets(octets))) - 1
    assert len(stream.warnings) == 1 and "(stream)" in stream.warnings[0]
    assert pyarrow.table(stream).num_rows == found
    assert len(stream.warnings) == 1


class Failing(io.RawIOBase):
    """A file object that fails after some octets."""

    def __init__(self, octets, result):
        self.octets, self.result = io.BytesIO(octets), result

    def read(self, count):
        return self.octets.read(count) or self.result(count)


def test_errors_of_file_objects(web):
    octets = web.read_bytes()[:100_000]

    def fail(count):
        raise RuntimeError("the disk is missing")

    with pytest.raises(flowgauge.Error, match="the disk is missing") as raised:
        list(flowgauge.packets(Failing(octets, fail)))
    assert isinstance(raised.value.__cause__, RuntimeError)
    with pytest.raises(OSError, match="RuntimeError: the disk is missing"):
        pyarrow.table(flowgauge.packets(Failing(octets, fail)))
    for result in (lambda count: "text", lambda count: None, lambda count: bytes(count + 1)):
        with pytest.raises(flowgauge.Error):
            list(flowgauge.packets(Failing(octets, result)))


def check_closed(opened):
    """A stream that was closed returns no rows to consumers that it had before, or has later."""
    with opened as stream:
        rows = iter(stream)
        next(rows)
        reader = pyarrow.RecordBatchReader.from_stream(stream)
    with pytest.raises(ValueError, match="closed"):
        list(rows)
    with pytest.raises(OSError, match="closed"):
        reader.read_all()
    for consume in (iter, pyarrow.table):
        with pytest.raises(ValueError, match="closed"):
            consume(stream)
    stream.close()


def test_closed_streams(web):
    check_closed(flowgauge.packets(web, batch_size=1))
