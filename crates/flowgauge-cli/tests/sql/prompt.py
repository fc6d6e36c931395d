"""Uses the prompt of `flowgauge sql` on a pseudo-terminal. Arguments: the command, a capture, a pipe without data, a folder."""

import os
import pty
import select
import signal
import sys
import time

COMMAND, CAPTURE, PIPE, HOME = sys.argv[1:]
PROMPT = "flowgauge> "


class Prompt:
    def __init__(self):
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.environ.update(HOME=HOME, TERM="xterm")
            os.environ.pop("XDG_STATE_HOME", None)
            os.execv(COMMAND, [COMMAND, "sql"])
        self.read = ""
        self.wait(PROMPT)

    def wait(self, text):
        """Reads up to a text, which must arrive within 30 seconds."""
        end = time.monotonic() + 30
        while text not in self.read:
            assert time.monotonic() < end, f"{text!r} is not in {self.read!r}"
            if select.select([self.terminal], [], [], 0.05)[0]:
                self.read += os.read(self.terminal, 1 << 16).decode()
        self.read = self.read.partition(text)[2]

    def write(self, text):
        os.write(self.terminal, text.encode())

    def files(self):
        """Returns the paths of the files that the program has open."""
        folder = f"/proc/{self.process}/fd"
        paths = []
        for name in os.listdir(folder):
            try:
                paths.append(os.readlink(os.path.join(folder, name)))
            except FileNotFoundError:
                pass
        return paths

    def wait_for(self, condition, problem):
        end = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < end, problem
            time.sleep(0.01)

    def status(self):
        """Reads to the end of the program, and returns its exit status."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                if select.select([self.terminal], [], [], 0.05)[0] and not os.read(self.terminal, 1 << 16):
                    break
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


prompt = Prompt()
prompt.write(f"SELECT count(*) AS n FROM flows('{CAPTURE}');\r")
prompt.wait("\n27\r\n")
prompt.wait(PROMPT)
prompt.write("SELECT missing;\r")
prompt.wait("No field named missing")
prompt.wait(PROMPT)
# A statement of two lines.
prompt.write("SELECT 1 AS a,\r")
prompt.wait("a,\r\n")
prompt.write("2 AS b;\r")
prompt.wait("\n1  2\r\n")
prompt.wait(PROMPT)
# Ctrl-C ends the query, but not the program.
prompt.write(f"SELECT protocol, count(*) FROM flows('{PIPE}') GROUP BY protocol;\r")
prompt.wait(";")
prompt.wait_for(lambda: PIPE in prompt.files(), "the pipe was not opened")
begin = time.monotonic()
prompt.write("\x03")
prompt.wait(PROMPT)
assert time.monotonic() - begin < 5, "the query was not ended"
prompt.wait_for(lambda: PIPE not in prompt.files(), "the thread of the query was not ended")
# Tab completes a keyword, and the name of a file.
prompt.write("SEL\t")
prompt.wait("SELECT")
prompt.write("\x03")
prompt.wait(PROMPT)
prompt.write(f"SELECT count(*) AS n FROM flows('{CAPTURE[:-3]}\t');\r")
prompt.wait("\n27\r\n")
prompt.wait(PROMPT)
prompt.write("\\?\r")
prompt.wait("ends the program")
prompt.wait(PROMPT)
prompt.write("\\q\r")
assert prompt.status() == 0
history = os.path.join(HOME, ".local/state/flowgauge/sql_history")
assert "SELECT missing;" in open(history).read()
assert os.stat(history).st_mode & 0o777 == 0o600, oct(os.stat(history).st_mode)
# The history is that of the next prompt.
prompt = Prompt()
prompt.write("\x1b[A")
prompt.wait("\\q")
os.kill(prompt.process, signal.SIGTERM)
assert prompt.status() == 143
