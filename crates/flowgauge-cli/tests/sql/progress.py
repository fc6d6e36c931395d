"""Runs queries of `flowgauge sql` on a pseudo-terminal, and reads its progress bar. Arguments: the command, a capture."""

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time

COMMAND, CAPTURE = sys.argv[1:]
# The scan of the capture ends soon, and the query does not.
LONG = f"flows('{CAPTURE}') AS a, generate_series(1, 10000000000) AS b"


class Query:
    """A query whose standard error is a terminal, and its standard output too unless it has a file."""

    def __init__(self, query, out=None):
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            # The size of the terminal is known when the command starts.
            time.sleep(0.2)
            os.environ["TERM"] = "xterm"
            if out is not None:
                os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT), 1)
            os.execv(COMMAND, [COMMAND, "sql", query])
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.text = ""

    def read(self, is_enough, seconds):
        """Reads until the text is enough, the process has ended, or the time has passed."""
        end = time.monotonic() + seconds
        while not is_enough(self.text) and time.monotonic() < end:
            if select.select([self.terminal], [], [], 0.05)[0]:
                try:
                    octets = os.read(self.terminal, 1 << 16)
                except OSError:
                    return
                self.text += octets.decode(errors="replace")

    def interrupt(self):
        """Ends the query by Ctrl-C, and returns what it has written since then and its status."""
        before = len(self.text)
        os.write(self.terminal, b"\x03")
        self.read(lambda _: False, 30)
        return self.text[before:], os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


# Without rows, the bar appears on the terminal of both, and beside a file.
for out in [None, os.devnull]:
    query = Query(f"SELECT sum(source_port * value) FROM {LONG}", out)
    query.read(lambda text: "100 %" in text and "remaining" in text, 30)
    assert "100 %" in query.text, query.text
    rest, status = query.interrupt()
    assert status == 130, (status, rest)
    # The line of the bar is erased.
    assert "\x1b[2K" in rest, repr(rest)
# The first row on the terminal ends the bar, but rows of a file do not.
query = Query(f"SELECT source_port FROM {LONG}")
query.read(lambda text: "SOURCE_PORT" in text, 30)
query.read(lambda _: False, 1.5)
rows = query.text.partition("SOURCE_PORT")[2]
assert rows.count("\n") > 1000 and "%" not in rows
assert query.interrupt()[1] == 130
query = Query(f"SELECT source_port FROM {LONG}", os.devnull)
query.read(lambda text: "100 %" in text, 30)
assert "100 %" in query.text
assert query.interrupt()[1] == 130
# A query that ends soon has none.
query = Query(f"SELECT count(*) AS n FROM flows('{CAPTURE}')")
query.read(lambda _: False, 30)
assert query.text == " N\r\n27\r\n", repr(query.text)
assert os.waitstatus_to_exitcode(os.waitpid(query.process, 0)[1]) == 0
