"""Child processes with bad manners, for the tests of the stdio channel: run with the manner's name and its arguments.

Needs nothing but the standard library, so that it starts with `python -I -S` in a few milliseconds.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

HELLO = b'{"jsonrpc":"2.0","method":"hello"}\n'
CHUNK = 65536


def say(data: bytes) -> None:
    """Straight to stdout, all of it."""
    while data:
        data = data[os.write(1, data) :]


def echo() -> None:
    """Answers each line with the same line, until its input ends."""
    say(HELLO)
    for line in iter(sys.stdin.buffer.readline, b""):
        say(line)


def answer_and_end(text: str, code: str) -> None:
    """Writes this to stdout, some words to stderr, and exits."""
    say(text.encode("utf-8", "surrogateescape"))
    os.write(2, b"first words\n\x1b[31mfatal: no \x07disk\x1b[0m\n")
    sys.exit(int(code))


def crash_in_answer() -> None:
    """Reads a request and is killed in the middle of its answer."""
    say(HELLO)
    line = sys.stdin.buffer.readline()
    say(line[: len(line) // 2])
    os.kill(os.getpid(), signal.SIGSEGV)


def write_hex(text: str) -> None:
    """Writes these bytes, given as hex, then behaves."""
    say(bytes.fromhex(text))
    echo()


def fill_and_end(text: str, count: str) -> None:
    """Makes its stdout hold 1 MiB, writes this so many times, and exits at once."""
    fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1024 * 1024)
    say(text.encode() * int(count))


def chatter(count: str, rounds: str = "1") -> None:
    """So many lines that are no messages, then one that is; and again."""
    for _ in range(int(rounds)):
        for number in range(int(count)):
            say(b"log line %d\n" % number)
        say(HELLO)
    echo()


def flood_stderr(text: str, count: str) -> None:
    """So many times the same on stderr, then behaves."""
    left = text.encode() * int(count)
    while left:
        left = left[os.write(2, left[:CHUNK]) :]
    os.write(2, b"\nlast line")
    echo()


def bomb() -> None:
    """One line that never ends."""
    while True:
        say(b"x" * CHUNK)


def deaf() -> None:
    """Never reads, until it is told to by SIGUSR1; then it echoes everything it was sent."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    say(HELLO)
    signal.sigwait({signal.SIGUSR1})
    echo()


def polite(journal: str) -> None:
    """Ends when its input ends, and writes down why."""
    echo()
    Path(journal).write_text("end of input")


def heeds_sigterm(journal: str) -> None:
    """Ends on SIGTERM only, and writes down why."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    echo()
    signal.sigwait({signal.SIGTERM})
    Path(journal).write_text("SIGTERM")


def stubborn() -> None:
    """Ends on nothing but SIGKILL."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    echo()
    while True:
        signal.pause()


def parent() -> None:
    """Starts a child that is as stubborn and holds the same pipes, says its number, then behaves."""
    say(b'{"jsonrpc":"2.0","method":"child","params":{"pid":%d}}\n' % fork_stubborn())
    echo()


def parent_that_dies() -> None:
    """The same, but exits at the first line it gets."""
    say(b'{"jsonrpc":"2.0","method":"child","params":{"pid":%d}}\n' % fork_stubborn())
    sys.stdin.buffer.readline()
    os._exit(7)


def detaching_parent() -> None:
    """Starts a process that leaves its session and its parent, says its number, then behaves."""
    told, telling = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.write(telling, b"%d" % os.getpid())
        while True:
            signal.pause()
    os.wait()
    say(b'{"jsonrpc":"2.0","method":"child","params":{"pid":%s}}\n' % os.read(told, 20))
    echo()


def clearing_parent() -> None:
    """Starts a program in a session of its own and without an environment, as SDKs start servers; says its number, then behaves."""
    arguments = ["/bin/sleep", "600"]
    child = subprocess.Popen(arguments, env={}, start_new_session=True, stdin=subprocess.DEVNULL, stdout=2)
    say(b'{"jsonrpc":"2.0","method":"child","params":{"pid":%d}}\n' % child.pid)
    echo()


def fork_stubborn() -> int:
    ready, done = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.close(done)
        while True:
            signal.pause()
    os.close(done)
    os.read(ready, 1)
    return pid


def mute() -> None:
    """Closes its stdout and lives on."""
    say(HELLO)
    os.close(1)
    while True:
        signal.pause()


def plugs_its_ears() -> None:
    """Closes its stdin, says so, and lives on."""
    os.close(0)
    say(HELLO)
    while True:
        signal.pause()


def environment() -> None:
    """Says the names in its environment, its open descriptors and its arguments."""
    names = ",".join(sorted(os.environ))
    descriptors = ",".join(sorted(os.listdir("/proc/self/fd"), key=int))
    say(
        b'{"jsonrpc":"2.0","method":"env","params":{"names":"%b","fds":"%b"}}\n'
        % (names.encode(), descriptors.encode())
    )
    echo()


def blocked_on_stdout() -> None:
    """Fills its stdout until somebody reads, and only then looks at its input."""
    say(HELLO + HELLO * 20000)
    echo()


def shell_launcher() -> None:
    """A server started by another program that stays in between, as package runners do."""
    subprocess.run([sys.executable, "-I", "-S", __file__, "echo"], check=False)


def main() -> None:
    manner: Callable[..., None] = globals()[sys.argv[1]]
    manner(*sys.argv[2:])


if __name__ == "__main__":
    main()
