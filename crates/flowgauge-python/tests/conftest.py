"""Captures and the command."""

import json
import os
import pathlib
import subprocess

import pytest

DATA = pathlib.Path(__file__).resolve().parents[3] / "examples" / "data"
COMMAND = os.environ["FLOWGAUGE_COMMAND"]
CAPTURES = sorted([*DATA.glob("*.pcap"), *DATA.glob("*.pcapng")])


@pytest.fixture(params=CAPTURES, ids=lambda path: path.name)
def capture(request):
    return request.param


@pytest.fixture
def web():
    return DATA / "web.pcap"


def command(*arguments):
    """Returns the objects that the command writes as ndjson."""
    arguments = [COMMAND, *map(str, arguments), "--format", "ndjson", "--quiet"]
    run = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=60)
    return [json.loads(line) for line in run.stdout.splitlines()]
