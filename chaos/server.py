"""A stdio MCP server that misbehaves when it is asked to. Standard library only, so that it starts quickly.

`echo` gives its text back after `ms` milliseconds. Each fault is a tool of its name. Calls with a delay are answered by threads, so that
quick calls pass slow ones.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

_lock = threading.Lock()
_state: dict[str, Any] = {"generation": 0, "deaf": False, "garble": 0, "wrong_id": 0, "twice": 0}
FAULTS = ("crash", "flood", "garble", "wrong_id", "twice", "huge", "noise", "orphan", "change", "deaf")


def main() -> None:
    for line in sys.stdin:
        if not _state["deaf"]:
            _take(json.loads(line))


def _take(message: dict[str, Any]) -> None:
    method, id_ = message.get("method"), message.get("id")
    if id_ is None:
        return
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": "chaos", "version": "1"}
        _answer(id_, {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": info})
    elif method == "tools/list":
        _answer(id_, {"tools": _tools()})
    elif method == "tools/call":
        _call(id_, message["params"]["name"], message["params"].get("arguments", {}))
    elif method == "ping":
        _answer(id_, {})
    else:
        _write({"jsonrpc": "2.0", "id": id_, "error": {"code": -32601, "message": "no such method"}})


def _tools() -> list[dict[str, Any]]:
    text = {"type": "object", "properties": {"text": {"type": "string"}, "ms": {"type": "integer"}}}
    names = ["echo", *FAULTS, f"extra_{_state['generation']}"]
    return [{"name": name, "description": f"Does {name}.", "inputSchema": text} for name in names]


def _call(id_: Any, name: str, arguments: dict[str, Any]) -> None:
    text, delay_ms = arguments.get("text", ""), arguments.get("ms", 0)
    if name in FAULTS:
        _misbehave(name, id_)
    if delay_ms:
        threading.Thread(target=_answer_later, args=(id_, text, delay_ms / 1000), daemon=True).start()
    else:
        _answer(id_, _result(text))


def _answer_later(id_: Any, text: str, delay_s: float) -> None:
    time.sleep(delay_s)
    _answer(id_, _result(text))


def _result(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def _misbehave(name: str, id_: Any) -> None:
    if name == "crash":
        os._exit(3)
    elif name == "flood":
        for number in range(2000):
            _write({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": number}})
    elif name == "huge":
        _answer(id_, _result("x" * 12_000_000))
    elif name == "noise":
        sys.stderr.write("noise " * 200_000 + "\n")
        sys.stderr.flush()
        _raw("this is no JSON\n" * 50)
    elif name == "orphan":
        _leave_orphan()
    elif name == "change":
        _state["generation"] += 1
        _write({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    elif name == "deaf":
        _state["deaf"] = True
    else:
        _state[name] += 3


def _leave_orphan() -> None:
    """A process that has left its group and its parent."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for descriptor in (0, 1, 2):
                os.close(descriptor)
            time.sleep(3600)
        os._exit(0)
    os.wait()


def _answer(id_: Any, result: dict[str, Any]) -> None:
    for lie in ("garble", "wrong_id", "twice"):
        if _state[lie]:
            _state[lie] -= 1
            _lie(lie, id_, result)
    _write({"jsonrpc": "2.0", "id": id_, "result": result})


def _lie(lie: str, id_: Any, result: dict[str, Any]) -> None:
    if lie == "garble":
        whole = json.dumps({"jsonrpc": "2.0", "id": id_, "result": result})
        _raw(whole[: len(whole) // 2] + "\n")
    elif lie == "wrong_id":
        _write({"jsonrpc": "2.0", "id": 987_654_321, "result": _result("for nobody")})
    else:
        _write({"jsonrpc": "2.0", "id": id_, "result": result})


def _write(message: dict[str, Any]) -> None:
    _raw(json.dumps(message) + "\n")


def _raw(text: str) -> None:
    with _lock:
        sys.stdout.write(text)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
