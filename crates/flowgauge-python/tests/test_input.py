"""All kinds of input have the same rows."""

import gzip
import io
import mmap
import os
import pathlib
import shutil
import threading
import time

import flowgauge
import pytest

from conftest import DATA


def rows(captures, **options):
    return list(flowgauge.flows(captures, **options))


def without_file(found):
    return [{name: value for name, value in row.items() if name != "file"} for row in found]


def test_paths_and_lists(web):
    expected = rows(str(web))
    assert len(expected) == 27
    assert rows(web) == rows([web]) == rows((str(web),)) == rows(iter([web])) == expected


def test_patterns(tmp_path, web, monkeypatch):
    for name in ("b1.pcap", "a1.pcap", "a10.pcap"):
        shutil.copy(web, tmp_path / name)
    files = lambda pattern: [row["file"] for row in rows(str(tmp_path / pattern), limit=None)][::27]
    assert files("*.pcap") == [str(tmp_path / name) for name in ("a1.pcap", "a10.pcap", "b1.pcap")]
    assert files("a?.pcap") == [str(tmp_path / "a1.pcap")]
    assert files("[b]1.pcap") == [str(tmp_path / "b1.pcap")]
    # A file with this name is not a pattern, and neither is a path object.
    shutil.copy(web, tmp_path / "a[1].pcap")
    assert files("a[1].pcap") == [str(tmp_path / "a[1].pcap")]
    with pytest.raises(FileNotFoundError):
        rows(tmp_path / "*.pcap")
    monkeypatch.chdir(tmp_path)
    assert rows("b*")[0]["file"] == "b1.pcap"


def test_octets_and_file_objects(web):
    expected = without_file(rows(web))
    octets = web.read_bytes()
    for source in (octets, bytearray(octets), memoryview(octets), io.BytesIO(octets)):
        found = rows(source)
        assert without_file(found) == expected
        assert {row["file"] for row in found} == {None}
    with open(web, "rb") as file:
        found = rows(file)
    assert found == rows(web)
    with open(web, "rb", buffering=0) as file:
        assert rows(file) == rows(web)
    assert without_file(rows(gzip.compress(octets))) == expected


def test_names_of_file_objects(tmp_path, web):
    octets = web.read_bytes()
    for name, expected in [(b"a.pcap", "a.pcap"), (b"\xff.pcap", "\ufffd.pcap")]:
        path = os.path.join(os.fsencode(tmp_path), name)
        with open(path, "wb") as file:
            file.write(octets)
        for named in (path, os.fsdecode(path)):
            with open(named, "rb") as file:
                assert {row["file"] for row in rows(file)} == {os.path.join(tmp_path, expected)}
    with open(web, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert without_file(rows(mapped)) == without_file(rows(web))


class PathWithRead(type(pathlib.Path())):
    """A path with a method of this name, as that of `py.path.local`."""

    def read(self):
        return ""


def test_paths_with_a_method_read(web):
    assert rows(PathWithRead(web)) == rows(web)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="waits for a pipe")
def test_what_a_pipe_has_is_read_at_once(web):
    """A file object with a buffer waits for as many octets as are requested, unless one read is requested."""
    reading, writing = os.pipe()
    octets = web.read_bytes()
    # All of them would be needed after this time.
    late = threading.Timer(10, os.close, [writing])
    with open(reading, "rb") as pipe:
        os.write(writing, octets[:3000])
        late.start()
        began = time.monotonic()
        packets = iter(flowgauge.packets(pipe, batch_size=1))
        assert next(packets)["wire_len"] > 0
        assert time.monotonic() - began < 9
        late.cancel()
        os.write(writing, octets[3000:20_000])
        os.close(writing)
        assert len(list(packets)) > 10


def test_a_file_object_is_read_from_its_position(web):
    file = io.BytesIO(b"other octets" + web.read_bytes())
    file.seek(len(b"other octets"))
    assert len(rows(file)) == 27


def test_a_file_object_is_read_once(web):
    stream = flowgauge.flows(io.BytesIO(web.read_bytes()))
    assert len(list(stream)) == 27
    with pytest.raises(ValueError, match="only once"):
        iter(stream)


def test_paths_and_octets_are_read_by_each_consumer(web):
    for source in (web, web.read_bytes()):
        stream = flowgauge.flows(source)
        assert list(stream) == list(stream) != []


def test_all_files_of_the_examples():
    stream = flowgauge.packets(str(DATA / "*.pcap*"), columns=["file"])
    assert {pathlib.Path(row["file"]).name for row in stream} == {
        path.name for path in DATA.iterdir() if path.suffix in (".pcap", ".pcapng")
    }
