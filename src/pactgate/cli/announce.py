"""The output of `pactgate serve` for the person who started it: the address, how to use it, and the state of each server.

Lines are written without waiting for the reader. Reasons come from upstreams and are shown escaped, on one line. Must not: write a token
to anything but a terminal, because other output ends in logs.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import Final, TextIO

from pactgate import __version__
from pactgate.cli.terminal import is_terminal, paint, without_name, wrapped
from pactgate.core import events
from pactgate.core.display import flat
from pactgate.core.events import Event
from pactgate.core.masking import Mask
from pactgate.telemetry.log_handler import LineWriter

SHOWN: Final[frozenset[type[Event]]] = frozenset(
    {
        events.GatewayStarted,
        events.GatewayStopped,
        events.ServerConnected,
        events.ServerDiscovered,
        events.ServerDisconnected,
        events.ServerFailed,
        events.DiscoveryFailed,
    }
)
"""Events that are announced; the log on the same terminal does not repeat them."""
_EVERYWHERE: Final = {"//0.0.0.0:": "//127.0.0.1:", "//[::]:": "//[::1]:"}
_DEFAULT_ADDRESS: Final = "http://127.0.0.1:7411"
_REASON_CHARS: Final = 300
_TOLD_LINES: Final = 20
_DOWN: Final = "down"


class Announcer:
    """Prints to one stream. `last_error` gives the reason why a server could not be connected; `mask` hides secrets in it."""

    def __init__(self, stream: TextIO, last_error: Callable[[str], str | None], mask: Mask) -> None:
        self._stream = stream
        self._lines = LineWriter(stream.fileno())
        self._last_error = last_error
        self._mask = mask
        self._connected: dict[str, events.ServerConnected] = {}
        self._told: dict[str, list[str]] = {}
        """The lines of each server since it was last available."""
        self._reasons: dict[str, str] = {}
        """Why each server is not available, as it was last printed."""

    def say(self, text: str = "") -> None:
        self._lines.write(text.encode(errors="backslashreplace") + b"\n")

    def welcome(
        self,
        address: str,
        *,
        is_demo: bool,
        file: str | None,
        token: str | None,
        token_file: str | None,
        needs_token: bool,
        socket: str | None = None,
        console: str | None = None,
        console_file: str | None = None,
    ) -> None:
        """Print the address and how to use it, before the first server is connected. A token that is in a file is not printed."""
        has_port = address.startswith("http")
        is_everywhere = any(host in address for host in _EVERYWHERE)
        address = near_address(address)
        endpoint = f"{address}/mcp" if has_port else address
        self.say(f"{paint(f'Pactgate {__version__}', 'bold', self._stream)} at {paint(endpoint, 'cyan', self._stream)}")
        if has_port and socket is not None:
            self.say(f"Local clients need no token at the socket unix:{socket}")
        if is_everywhere:
            self.say(
                "Other machines reach it by a name of this machine that is in listen.allowedHosts, or by its address."
            )
        if is_demo:
            self.say(
                "There is no configuration here, so this is the demo: two MCP servers, a file of Python tools and a REST API."
            )
        elif file is not None:
            self.say(f"Configuration: {flat(file, _REASON_CHARS)}")
        if token is not None:
            self.say("Clients need a token, and the configuration has none. This one is valid for this run.")
            self.say(
                f"It is shown only here:\n  {token}" if token_file is None else f"It is in the file:\n  {token_file}"
            )
        self.say()
        if console is not None:
            self.offer_console(console, console_file)
            self.say()
        if has_port:
            entry = _client_entry(endpoint, None if token_file else token, needs_token)
            self.say("Add this to the configuration of your client:")
            self.say(f"  {json.dumps({'mcpServers': {'pactgate': entry}})}")
        self.say("Or use it from another terminal:" if has_port else "Use it from another terminal:")
        for words in ("tools", "call date_facts date=2026-06-21" if is_demo else "servers"):
            token_first = "PACTGATE_TOKEN=YOUR-TOKEN " if socket is None and (needs_token or token is not None) else ""
            self.say(f"  {token_first}{command()} {words if socket else _with_address(words, address)}")
        if is_demo:
            self.say("To serve your own servers, stop this, add them, and start it again:")
            self.say(f"  {command()} add files -- npx -y @modelcontextprotocol/server-filesystem .")
            self.say("Or serve the file of your client as it is:")
            self.say(f"  {command()} serve --config claude_desktop_config.json")
        self.say("Ctrl-C stops the gateway.")
        self.say()

    def offer_console(self, link: str, file: str | None) -> None:
        """Print the link that opens the console once, or the file that it is in."""
        if file is None:
            self.say(
                f"Look at it in a browser; this link signs in once:\n  {paint(near_address(link), 'cyan', self._stream)}"
            )
        else:
            page = near_address(link).partition("#")[0]
            self.say(f"Look at it in a browser at {page}; a link that signs in once is in the file:\n  {file}")

    def emit(self, event: Event) -> None:
        if isinstance(event, events.RequestFinished):
            return
        if isinstance(event, events.ServerConnected):
            self._connected[event.server] = event
        elif isinstance(event, events.ServerDiscovered):
            self._tell_connected(event)
        elif isinstance(event, events.ServerDisconnected):
            self._tell(event.server, "lost", "yellow", event.reason)
        elif isinstance(event, events.DiscoveryFailed):
            self._tell(event.server, "warn", "yellow", f"its tools can't be listed: {event.reason}")
        elif isinstance(event, events.ServerFailed):
            self._tell_failed(event)
        elif isinstance(event, events.ServerConnecting) and event.attempt == 2:
            reason = self._last_error(event.server) or "no connection"
            self._reasons[event.server] = reason
            self._tell(
                event.server, "wait", "yellow", f"not connected yet: {self._own(event.server, reason)}; trying again"
            )

    def _tell_connected(self, event: events.ServerDiscovered) -> None:
        connected = self._connected.get(event.server)
        if connected is not None:
            self._reasons.pop(event.server, None)
            tools = f"{event.tools} tool{'s' * (event.tools != 1)}"
            how = f"connected in {connected.duration_ms:.0f} ms"
            self._tell(event.server, "ok", "green", f"{tools}, protocol version {connected.version}, {how}")

    def _tell_failed(self, event: events.ServerFailed) -> None:
        """The reason is not repeated where the line before has it, and an unchanged failure not at all."""
        told, count = self._told.get(event.server), f"{event.attempts} attempt{'s' * (event.attempts != 1)}"
        if self._reasons.get(event.server) == event.reason:
            if told and told[-1].startswith(_DOWN):
                return
            text = f"not connected after {count}; the gateway goes on trying"
        else:
            text = f"{self._own(event.server, event.reason)} (after {count}; the gateway goes on trying)"
        self._reasons[event.server] = event.reason
        self._tell(event.server, _DOWN, "red", text)

    def _own(self, server: str, reason: str) -> str:
        """A reason for the middle of a line that begins with the name of the server."""
        return without_name(server, reason).removesuffix(".")

    def _tell(self, server: str, word: str, style: str, text: str) -> None:
        """Print one line for a change; while a server is not available, no line is printed twice."""
        shown = flat(self._mask(text), _REASON_CHARS)
        line = f"{server:<12} {shown}"
        told = self._told.setdefault(server, [])
        if word + line not in (told[-1:] if word == "ok" else told):
            if word == "ok" or len(told) >= _TOLD_LINES:
                told.clear()
            told.append(word + line)
            begin = f"{server:<12} "
            used = len(begin) + 8
            self.say(
                f"  {paint(f'{word:<5}', style, self._stream)} {begin}{wrapped(shown, self._stream, used=used, indent=used)}"
            )


def near_address(address: str) -> str:
    """Where this machine reaches a gateway: an address to listen on is none to call."""
    for host, near in _EVERYWHERE.items():
        address = address.replace(host, near)
    return address


def command() -> str:
    """How to call this program from the shell it was started in."""
    program = sys.argv[0]
    if os.path.basename(program) != "pactgate" or not os.path.exists(program):
        return f"{os.path.basename(sys.executable)} -m pactgate"
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found = os.path.join(folder, "pactgate")
        if os.access(found, os.X_OK):
            return "pactgate" if os.path.samefile(found, program) else os.path.relpath(program)
    return os.path.relpath(program)


def write_token(token: str, folder: Path) -> str:
    """Write the token to a file that only this user can read, and return its path. Raises OSError."""
    path = str(folder / f"{token_hex(8)}.token")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(handle, "w", encoding="ascii") as file:
        file.write(f"{token}\n")
    return path


def announces_on(stream: TextIO, *, is_stdio: bool) -> bool:
    """Over stdio a client starts the gateway, and a person reads only where the stream is a terminal."""
    return not is_stdio or is_terminal(stream)


def _with_address(words: str, address: str) -> str:
    return words if address == _DEFAULT_ADDRESS else f"{words} --url {address}"


def _client_entry(endpoint: str, token: str | None, needs_token: bool) -> dict[str, object]:
    entry: dict[str, object] = {"url": endpoint}
    if token is not None or needs_token:
        entry["headers"] = {"Authorization": f"Bearer {token or 'YOUR-TOKEN'}"}
    return entry
