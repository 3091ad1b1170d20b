"""A small legacy MCP server in many manners, for fleets of them: run with `python -I -S` and the manner's name.

Needs nothing but the standard library and starts in a few milliseconds. `healthy` offers `echo` (text), `slow` (ms, and a named pipe it
writes to when it begins) and `crash`. `silent` never reads, `deaf` knows no handshake, `listless` never lists, `crashing` dies as soon as
it has listed. `flooding` is healthy and writes without pause; `stubborn` is healthy, ends on nothing but SIGKILL and has a child like it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = {"type": "object", "properties": {name: {} for name in ("text", "ms", "mark")}}
FLOOD = b"".join(
    b'{"jsonrpc":"2.0","method":"notifications/%b","params":%b}\n' % (name, params)
    for name, params in (
        (b"message", b'{"level":"debug","data":"%b"}' % (b"x" * 200)),
        (b"progress", b'{"progressToken":999999,"progress":1}'),
        (b"tools/list_changed", b"{}"),
    )
)
COMPLAINTS = b"something is wrong, or is it?\n" * 10


def write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def result_of(message: dict[str, Any], manner: str) -> dict[str, Any] | None:
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        about = {"capabilities": capabilities, "serverInfo": {"name": manner, "version": "1"}}
        return {"protocolVersion": params["protocolVersion"], **about}
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": SCHEMA} for name in ("echo", "slow", "crash")]}
    if method == "tools/call":
        arguments = params.get("arguments") or {}
        if "mark" in arguments:
            mark = os.open(arguments["mark"], os.O_WRONLY)
            os.write(mark, b"begun")
            os.close(mark)
        time.sleep(arguments.get("ms", 0) / 1000)
        if params["name"] == "crash":
            os._exit(7)
        return {"content": [{"type": "text", "text": arguments.get("text", "")}]}
    return {} if method == "ping" else None


def is_ignored(method: str, manner: str) -> bool:
    return (manner, method) in (("deaf", "initialize"), ("listless", "tools/list"))


def answer(line: bytes, manner: str) -> None:
    message = json.loads(line)
    if "id" not in message or "method" not in message or is_ignored(message["method"], manner):
        return
    result = result_of(message, manner)
    outcome = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
    write(1, json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}).encode() + b"\n")
    if manner == "crashing" and message["method"] == "tools/list":
        write(2, b"fatal: the disk is full\n")
        os._exit(3)


def serve(manner: str) -> None:
    rest = b""
    while True:
        if manner == "flooding" and not select.select([0], [], [], 0)[0]:
            write(2, COMPLAINTS)
            write(1, FLOOD)
            continue
        data = os.read(0, 65536)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            answer(line, manner)


def stay_for_ever() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        signal.pause()


def main(manner: str) -> None:
    if manner == "silent":
        stay_for_ever()
    if manner == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            stay_for_ever()
    serve(manner)
    if manner == "stubborn":
        stay_for_ever()


if __name__ == "__main__":
    main(sys.argv[1])
