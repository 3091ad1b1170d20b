"""`pactgate top`: the traffic of the running gateway, by server, as a table that refreshes itself.

Needs nothing but a terminal that knows ANSI sequences. Must not: leave the terminal in another state than it found it, however it ends.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import textwrap
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import click
import msgspec

from pactgate.cli import terminal
from pactgate.cli.audit import what
from pactgate.cli.errors import CommandError
from pactgate.cli.explain import call_lines
from pactgate.cli.gateway_client import GatewayClient
from pactgate.cli.shared_options import with_gateway
from pactgate.cli.traffic import ServerTraffic, traffic_between
from pactgate.core.display import cut, flat

_PAUSE_S: Final = 1.0
_WINDOW: Final = 10
"""Readings that rates are taken over: as many seconds."""
_SORTS: Final[dict[str, Callable[[ServerTraffic], float]]] = {
    "calls/s": lambda row: row.calls_per_s,
    "p95": lambda row: row.p95_ms or 0,
    "err%": lambda row: row.failed_percent,
    "run": lambda row: row.running,
    "wait": lambda row: row.waiting,
    "server": lambda row: row.server_ms or 0,
    "queue": lambda row: row.queue_ms or 0,
    "here": lambda row: row.gateway_ms or 0,
}
_HEADS: Final = ("SERVER", "CALLS/S", "P50", "P95", "ERR%", "RUN", "WAIT", "SERVER", "QUEUE", "GATES", "HERE")
_WIDTHS: Final = (13, 8, 7, 7, 5, 4, 5, 7, 7, 7, 7)
_ENTER_SCREEN: Final = "\x1b[?1049h\x1b[?25l"
_LEAVE_SCREEN: Final = "\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"
_KEYS: Final = {"\x1b[A": "up", "\x1b[B": "down", "k": "up", "j": "down", "\r": "enter", "\n": "enter"}
_ROWS_OF_SERVERS: Final = 8
_LABEL_CHARS: Final = 16
_MAX_FACT_CHARS: Final = 1000


@click.command(
    epilog="Keys: s sorts by the next column, p pauses, / filters, arrows choose a call, Enter opens it, q ends."
)
@click.option("--once", is_flag=True, help="Print the table of the next second once, and end.")
@with_gateway
def top(client: GatewayClient, *, once: bool, as_json: bool) -> int:
    """Watch the traffic: calls per second, durations, errors and calls under way, by server.

    P50 and P95 are of whole calls. SERVER, QUEUE, GATES and HERE say where the time of a call went, on average: at the server, in
    its queue, in a gate that waited (as for an equal call), in the gateway itself. All are milliseconds, of the last ten seconds.
    """
    if once or as_json:
        before = client.get("/api/traffic")
        select.select([], [], [], _PAUSE_S)
        rows = traffic_between(before, client.get("/api/traffic"))
        if as_json:
            terminal.say_json(msgspec.to_builtins(rows))
        else:
            for line in _table(rows, "calls/s"):
                terminal.say(line)
        return 0
    if not (sys.stdin.isatty() and terminal.is_terminal(sys.stdout)):
        raise CommandError("`pactgate top` needs a terminal.", "Use --once, with --json for a program.")
    _Watch(client).run()
    return 0


class _Watch:
    """The state of one run: what was read, how it is sorted and filtered, and which call is chosen."""

    def __init__(self, client: GatewayClient) -> None:
        self._client = client
        self._readings: deque[dict[str, Any]] = deque(maxlen=_WINDOW + 1)
        self._calls: list[dict[str, Any]] = []
        self._sort = "calls/s"
        self._filter = ""
        self._is_typing = self._is_paused = False
        self._chosen = 0
        self._opened: list[str] = []

    def run(self) -> None:
        with _screen():
            self._read()
            while True:
                self._draw()
                for key in _keys(_PAUSE_S):
                    if self._press(key):
                        return
                if not self._is_paused:
                    self._read()

    def _read(self) -> None:
        self._readings.append(self._client.get("/api/traffic"))
        self._calls = self._client.rows("calls")

    def _press(self, key: str) -> bool:
        """Take one key. Whether it ends the run."""
        if self._is_typing:
            self._type(key)
        elif key in ("q", "\x03"):
            if not self._opened or key == "\x03":
                return True
            self._opened = []
        elif key == "s":
            names = list(_SORTS)
            self._sort = names[(names.index(self._sort) + 1) % len(names)]
        elif key == "p":
            self._is_paused = not self._is_paused
        elif key == "/":
            self._is_typing, self._filter = True, ""
        elif key in ("up", "down"):
            self._chosen = max(0, min(self._chosen + (1 if key == "down" else -1), len(self._shown_calls()) - 1))
        elif key == "enter":
            self._open()
        else:
            self._opened = []
        return False

    def _type(self, key: str) -> None:
        if key in ("enter", "\x1b", "\x03"):
            self._is_typing = False
        elif key in ("\x7f", "\b"):
            self._filter = self._filter[:-1]
        elif len(key) == 1 and key.isprintable():
            self._filter = (self._filter + key)[:40]

    def _open(self) -> None:
        calls = self._shown_calls()
        if self._opened or not calls:
            self._opened = []
            return
        call = self._client.get(f"/api/calls/{calls[min(self._chosen, len(calls) - 1)]['requestId']}")
        self._opened = [
            f"{what(call)}  {call.get('outcome')}",
            "",
            *(line for label, text in call_lines(call) if text for line in _wrapped(label, text)),
        ]

    def _shown_calls(self) -> list[dict[str, Any]]:
        return [call for call in self._calls if self._filter in f"{call.get('tool')} {call.get('server')}"]

    def _draw(self) -> None:
        columns, height = shutil.get_terminal_size()
        lines = self._opened or self._overview(height)
        shown = [cut(line, columns - 1) for line in lines[: height - 1]]
        footer = (
            f"filter: {self._filter}_"
            if self._is_typing
            else "q quit  s sort  p pause  / filter  arrows choose  Enter open"
        )
        text = "".join(f"{line}{_CLEAR_LINE}\r\n" for line in shown)
        sys.stdout.write(
            f"{_HOME}{text}{terminal.paint(cut(footer, columns - 1), 'dim', sys.stdout)}{_CLEAR_LINE}{_CLEAR_BELOW}"
        )
        sys.stdout.flush()

    def _overview(self, height: int) -> list[str]:
        rows = [row for row in traffic_between(self._readings[0], self._readings[-1]) if self._filter in row.server]
        total = sum(row.calls_per_s for row in rows)
        state = "  paused" if self._is_paused else ""
        lines = [
            f"{self._client.url}  {total:.1f} calls/s{state}  sorted by {self._sort}",
            "",
            *_table(rows, self._sort),
        ]
        calls = self._shown_calls()
        room = max(0, height - len(lines) - 4)
        self._chosen = min(self._chosen, max(0, min(room, len(calls)) - 1))
        lines += ["", "  LAST CALLS"]
        for number, call in enumerate(calls[:room]):
            mark = ">" if number == self._chosen else " "
            took = f"{call.get('durationMs', 0):>9.1f} ms  {call.get('outcome')}"
            lines.append(f"{mark} {str(call.get('time'))[11:19]} {flat(what(call), 36):<36} {took}")
        return lines


def _wrapped(label: str, text: str) -> list[str]:
    """A fact of a call, in as many lines as it needs."""
    width = max(20, shutil.get_terminal_size().columns - 1 - _LABEL_CHARS)
    lines = textwrap.wrap(flat(text, _MAX_FACT_CHARS), width) or [""]
    return [f"{label if not number else '':<{_LABEL_CHARS}}{line}" for number, line in enumerate(lines)]


def _table(rows: list[ServerTraffic], sort: str) -> list[str]:
    ordered = sorted(sorted(rows, key=lambda row: row.server), key=_SORTS[sort], reverse=True)
    hidden = len(ordered) - _ROWS_OF_SERVERS
    more = [f"and {hidden} more: / filters, s sorts"] if hidden > 0 else []
    return [_line(_HEADS), *(_line(_cells(row)) for row in ordered[:_ROWS_OF_SERVERS]), *more]


def _cells(row: ServerTraffic) -> tuple[str, ...]:
    times = (row.server_ms, row.queue_ms, row.gates_ms, row.gateway_ms)
    return (
        cut(row.server, _WIDTHS[0] - 1),
        f"{row.calls_per_s:.1f}",
        *(_ms(value) for value in (row.p50_ms, row.p95_ms)),
        f"{row.failed_percent:.0f}",
        str(row.running),
        str(row.waiting),
        *(_ms(value) for value in times),
    )


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _line(cells: tuple[str, ...]) -> str:
    first, *rest = zip(cells, _WIDTHS, strict=True)
    return f"{first[0]:<{first[1]}}" + "".join(f"{cell:>{width}}" for cell, width in rest)


@contextmanager
def _screen() -> Iterator[None]:
    """The terminal without echo and line editing, on its other screen; put back however the run ends."""
    import termios
    import tty

    fd = sys.stdin.fileno()
    before, former = termios.tcgetattr(fd), signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.stdout.write(_ENTER_SCREEN)
    try:
        tty.setcbreak(fd)
        yield
    except KeyboardInterrupt:
        pass
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
        sys.stdout.write(_LEAVE_SCREEN)
        sys.stdout.flush()
        signal.signal(signal.SIGTERM, former)


def _keys(pause_s: float) -> list[str]:
    """The keys that were pressed within this time, or none; returns with the first of them."""
    ready, _, _ = select.select([sys.stdin], [], [], pause_s)
    if not ready:
        return []
    text = os.read(sys.stdin.fileno(), 64).decode(errors="replace")
    if text in _KEYS:
        return [_KEYS[text]]
    return [_KEYS.get(key, key) for key in text] if not text.startswith("\x1b[") else []
