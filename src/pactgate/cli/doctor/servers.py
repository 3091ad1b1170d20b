"""Doctor, one server: checks before connecting, and the result of connecting."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import socket
import threading
import time
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

from pactgate.cli.doctor.finding import Finding, fail, ok, warn
from pactgate.cli.server_table import skipped
from pactgate.cli.terminal import without_name
from pactgate.config.sections.openapi import is_url
from pactgate.config.server_settings import ServerConfig
from pactgate.core.display import cut
from pactgate.core.failures import GatewayFailure
from pactgate.core.masking import Mask
from pactgate.upstreams.http.proxy import route_of
from pactgate.upstreams.process.child import child_environment

_NETWORK_S: Final = 5.0
_REASONS: Final = 3
_COMMAND_CHARS: Final = 300
_INSTALL: Final = {
    **dict.fromkeys(("node", "npm", "npx"), "Install Node.js 18 or newer; npm and npx come with it."),
    **dict.fromkeys(("uv", "uvx"), "Install uv; uvx comes with it (pipx install uv)."),
    **dict.fromkeys(("bun", "bunx"), "Install Bun; bunx comes with it."),
    **dict.fromkeys(("python", "python3"), "Install Python 3, or write the full path of the one you mean."),
    "docker": "Install Docker, or another program that answers to its name.",
    "deno": "Install Deno.",
    "pipx": "Install pipx with your system's packages, or: python3 -m pip install --user pipx.",
}
_CREDENTIALS: Final = re.compile(r"\b40[13]\b")
_TOO_SLOW: Final = re.compile(r"\bwithin \d+ ms\b")


async def examine_before(server: ServerConfig) -> list[Finding]:
    """Check the program and the folder, or the host and the port."""
    if server.unresolved is not None:
        return [fail(f"server:{server.id}", f"not checked: {server.unresolved}", "Set it, and check again.")]
    if server.tools is not None:
        return _tools_file(server, server.tools)
    if server.openapi is not None and not is_url(server.openapi) and not os.access(server.openapi, os.R_OK):
        return [fail(f"server:{server.id}", f"its document {server.openapi} can't be read", "Correct `openapi`.")]
    if server.address is not None:
        return await _address(server)
    return [] if server.openapi is not None else _program(server)


def examine_row(server: ServerConfig, row: dict[str, Any], mask: Mask) -> list[Finding]:
    """Check the state after connecting. `row` is the state as `/api/servers` gives it."""
    topic = f"server:{server.id}"
    if row.get("lastError") or row.get("status") != "connected":
        reason = without_name(server.id, str(row.get("lastError") or f"it is {row.get('status')}"))
        return [fail(topic, reason, _next_step(server, reason, mask))]
    counts = ", ".join(_count(row.get(f"{word}Count"), word) for word in ("tool", "prompt", "resource"))
    protocol = f"protocol version {row.get('protocolVersion')} over {row.get('transport')}"
    found = [ok(topic, f"{protocol}, connected in {row.get('latencyMs') or 0:.0f} ms: {counts}")]
    reasons = skipped(row)
    if reasons:
        shown = "; ".join(reasons[:_REASONS]) + ("; …" if len(reasons) > _REASONS else "")
        found.append(warn(topic, f"{len(reasons)} skipped: {shown}", "Report this to the author of the server."))
    return found


def _count(count: Any, word: str) -> str:
    return f"{count} {word}{'s' * (count != 1)}"


def _next_step(server: ServerConfig, reason: str, mask: Mask) -> str:
    if server.openapi is not None:
        return "Run `pactgate check` to see what is wrong with the document, and look at `baseUrl` and `credentials`."
    if server.endpoints is not None:
        return "Look at `baseUrl`, `headers` and `endpoints`, and at the variables in them."
    if server.url is not None:
        if _CREDENTIALS.search(reason):
            return "The server refuses the credentials: look at `headers`, and at the variables in them."
        return "Is `url` the address of its MCP endpoint? Its path is often /mcp or /sse."
    if server.tools is not None:
        return f"See what is wrong with the file: pactgate check {shlex.quote(server.tools)}"
    by_hand = cut(mask(shlex.join([server.command or "", *server.args])), _COMMAND_CHARS)
    if _TOO_SLOW.search(reason):
        return f"The first start may download packages: run it once by hand, or raise connectionTimeoutMs. {by_hand}"
    return f"Run it by hand, in its folder and with its variables, to see its output: {by_hand}"


def _tools_file(server: ServerConfig, file: str) -> list[Finding]:
    topic = f"server:{server.id}"
    if not os.path.isfile(file):
        return [fail(topic, f"the file {file} does not exist", "Create it, or correct `tools`.")]
    return [ok(topic, f"its file is {file}")]


def _program(server: ServerConfig) -> list[Finding]:
    topic, command = f"server:{server.id}", server.command or ""
    if server.cwd is not None and not os.access(server.cwd, os.X_OK):
        what = "can't be entered" if os.path.isdir(server.cwd) else "does not exist"
        return [fail(topic, f"its folder {server.cwd} {what}", "Create it, or correct `cwd`.")]
    path = child_environment(command, server.env, os.environ)["PATH"]
    place = os.path.join(server.cwd or "", command) if os.sep in command else command
    found = shutil.which(place, path=path)
    if found is not None:
        return [ok(topic, f"its program is {found}")]
    if os.sep in command:
        why = "may not be executed" if os.path.isfile(place) else "does not exist"
        return [fail(topic, f"the program {place} {why}", "Correct `command`, or make the file executable (chmod +x).")]
    own = " Its `env` sets a PATH of its own." if "PATH" in server.env else ""
    hint = _INSTALL.get(command, f"Install {command}, or write its full path in `command`.")
    return [fail(topic, f"the program {command} is not on the PATH it is started with", hint + own)]


async def _address(server: ServerConfig) -> list[Finding]:
    topic = f"server:{server.id}"
    parts = urlsplit(server.address or "")
    key = "url" if server.url is not None else "baseUrl"
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        proxy, route = route_of(server)
    except GatewayFailure as failure:
        return [fail(topic, failure.message, "Correct the proxy, or set `proxy` of this server to none.")]
    found = [ok(topic, route)] if route else []
    if proxy is not None:
        host, port, key = proxy.host, proxy.port, proxy.source.strip("`")
    addresses = await _resolve(host, port)
    if isinstance(addresses, str):
        hint = f"Correct the host in `{key}`, or look at the network and its name server."
        return [*found, fail(topic, f"the host {host} {addresses}", hint)]
    started = time.monotonic()
    reached = await _reach(addresses)
    if isinstance(reached, str):
        hint = f"Is the server running? Correct the host or the port in `{key}`, or look at the firewall."
        return [*found, fail(topic, f"{host} can't be reached at port {port}: {reached}", hint)]
    took_ms = (time.monotonic() - started) * 1000
    address = f"{host} ({reached[0]})" if host != reached[0] else host
    return [*found, ok(topic, f"port {port} of {address} answers in {took_ms:.0f} ms")]


_Addresses = list[tuple[int, tuple[Any, ...]]]


async def _resolve(host: str, port: int) -> _Addresses | str:
    """The addresses of a host, or the reason why there are none. Runs in a daemon thread, because a resolver may take minutes."""
    answer: Future[_Addresses | str] = Future()

    def ask() -> None:
        found = _look_up(host, port)
        with suppress(InvalidStateError):  # after the timeout nobody waits any more
            answer.set_result(found)

    threading.Thread(target=ask, daemon=True).start()
    try:
        return await asyncio.wait_for(asyncio.wrap_future(answer), _NETWORK_S)
    except TimeoutError:
        return f"was not resolved within {_NETWORK_S:.0f} s"


def _look_up(host: str, port: int) -> _Addresses | str:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as problem:
        return f"can't be resolved: {getattr(problem, 'strerror', None) or problem}"
    return [(family, address) for family, _, _, _, address in found]


async def _reach(addresses: _Addresses) -> tuple[Any, ...] | str:
    """The first address that accepts a connection, or the reason why none does."""
    problem = "it has no address"
    try:
        async with asyncio.timeout(_NETWORK_S):
            for family, address in addresses:
                with socket.socket(family, socket.SOCK_STREAM) as connection:
                    connection.setblocking(False)
                    try:
                        await asyncio.get_running_loop().sock_connect(connection, address)
                    except OSError as refusal:
                        problem = os.strerror(refusal.errno) if refusal.errno else str(refusal)
                    else:
                        return address
    except TimeoutError:
        return f"no answer within {_NETWORK_S:.0f} s"
    return problem
