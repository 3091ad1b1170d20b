"""Finds the messages of single calls in the captures of a gateway, on both sides, and makes a capture of them.

A call is found on the client's side by its request id, which stands in its answer. On the server's side nothing carries this id: there, and
for a call without an answer, it is the tool and the time that fit, so equal calls at the same time may be taken for each other. With each
call come the handshake of its session and what the other side said meanwhile. Bounded in files, messages and bytes.
Must not: say that an excerpt is a whole session; a rule that needs all messages can't be decided.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Raw

from pactgate.capture.capture_files import begun_at, captures_in
from pactgate.capture.json_stream import JsonStream, NotJsonError
from pactgate.capture.source import chunks_of

MAX_MESSAGES: Final = 2000
MAX_BYTES: Final = 16 * 1024 * 1024
_SLACK_S: Final = 0.01
"""Both clocks are told in milliseconds, and are read at different moments."""
_ENVELOPE: Final = "dev.pactgate/envelope"
_HANDSHAKE: Final = frozenset({"initialize", "notifications/initialized", "server/discover"})
_CALL: Final = "tools/call"
_WHOLE: Final = "capture_version"

Members = dict[str, Any]


class CallSpan(NamedTuple):
    """One call: its id, its tool as the server names it, and when it ran."""

    request_id: str
    server: str
    tool: str
    began_at: float
    ended_at: float


class _Exchange(NamedTuple):
    """One exchange, and how it is written in the file: that is what an excerpt repeats."""

    members: Members
    text: Raw


class _Session(NamedTuple):
    """A session of a capture, while it is read: `members` and `texts` are complete when all exchanges were taken."""

    members: Members
    texts: dict[str, Raw]
    exchanges: Iterator[_Exchange]


class _Room:
    """What an excerpt may still take."""

    def __init__(self) -> None:
        self._messages = MAX_MESSAGES
        self._bytes = MAX_BYTES

    def takes(self, exchange: _Exchange) -> bool:
        self._messages -= 1
        self._bytes -= len(exchange.text)
        return self._messages >= 0 and self._bytes >= 0


def excerpt(folder: Path, calls: Sequence[CallSpan]) -> list[Members]:
    """The sessions of the captures in a folder, each with nothing but the messages of these calls, to be encoded. Raises OSError."""
    room, found = _Room(), []
    for path in captures_in(folder):
        leg = path.name.split("-")[2:3]
        near = [call for call in calls if _may_hold(path, call)]
        if near and (leg != ["callers"] or _mentions(path, near)):
            found += [taken for session in _sessions(path) if (taken := _taken(session, near, room))]
    return found


def _may_hold(path: Path, call: CallSpan) -> bool:
    begun, facts = begun_at(path), path.stat()
    is_then = begun is not None and begun <= call.ended_at + 1 and facts.st_mtime >= call.began_at - 1
    return is_then and facts.st_size > 0


def _mentions(path: Path, calls: Iterable[CallSpan]) -> bool:
    """Whether a file is worth reading: it holds an id, or a call that was never answered."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(b'"closed_by"') >= 0 or any(data.find(call.request_id.encode()) >= 0 for call in calls)


def _sessions(path: Path) -> Iterator[_Session]:
    """The sessions of one of our files. A file that is being written may end too early: what was read until then counts."""
    stream = JsonStream(chunks_of(path))
    session = _Session({}, {}, iter(()))
    try:
        names = stream.members()
        for name in names:
            if name == "exchanges":
                yield session._replace(exchanges=_read(stream, names, session))
                return
            _take(stream, name, session)
    except NotJsonError:
        return


def _read(stream: JsonStream, names: Iterator[str], session: _Session) -> Iterator[_Exchange]:
    try:
        for _ in stream.items():
            exchange = stream.value()
            if isinstance(exchange, dict):
                yield _Exchange(exchange, Raw(stream.text.encode()))
        for name in names:
            _take(stream, name, session)
    except NotJsonError:
        return


def _take(stream: JsonStream, name: str, session: _Session) -> None:
    session.members[name] = stream.value()
    session.texts[name] = Raw(stream.text.encode())


def _taken(session: _Session, calls: Sequence[CallSpan], room: _Room) -> Members | None:
    """The session with what is about the calls; None where nothing is."""
    members, began_at = session.members, _moment(session.members.get("started_at"))
    is_clients = members.get("leg") != "servers"
    own = [call for call in calls if is_clients or members.get("server_label") == call.server]
    handshake: list[Raw] = []
    kept: list[Raw] = []
    last_seq = -1.0
    for each in session.exchanges:
        exchange = each.members
        method = _request(exchange).get("method")
        if method in _HANDSHAKE and not kept:
            handshake = [*handshake, each.text][-len(_HANDSHAKE) :]
        elif (method == _CALL and _is_of(exchange, own, began_at, is_clients=is_clients)) or (
            _number(exchange.get("seq")) < last_seq and _goes_along(exchange)
        ):
            if not room.takes(each):
                break
            kept.append(each.text)
            last_seq = max(last_seq, _number(exchange.get("response_seq")))
    for _ in session.exchanges:  # what is known of the session stands behind them
        pass
    if not kept:
        return None
    head = {name: text for name, text in session.texts.items() if name != _WHOLE}
    return {**head, "exchanges": [*handshake, *kept]}


def _is_of(exchange: Members, calls: Iterable[CallSpan], began_at: float, *, is_clients: bool) -> bool:
    told = _told_id(exchange) if is_clients else None
    if told is not None:
        return any(call.request_id == told for call in calls)
    name = _params(exchange).get("name")
    at = began_at + _number(exchange.get("at_ms")) / 1000
    return any(
        isinstance(name, str)
        and name in (call.tool, f"{call.server}.{call.tool}", f"{call.server}__{call.tool}")
        and call.began_at - _SLACK_S <= at <= call.ended_at + _SLACK_S
        for call in calls
    )


def _told_id(exchange: Members) -> str | None:
    """The request id of the gateway that an answer carries."""
    answer = exchange.get("response")
    if not isinstance(answer, dict):
        return None
    result, error = answer.get("result"), answer.get("error")
    meta = result.get("_meta") if isinstance(result, dict) else None
    facts = meta.get(_ENVELOPE) if isinstance(meta, dict) else error.get("data") if isinstance(error, dict) else None
    told = facts.get("requestId") if isinstance(facts, dict) else None
    return told if isinstance(told, str) else None


def _goes_along(exchange: Members) -> bool:
    """A notification of either side, or what a server asks while it works."""
    return exchange.get("direction") == "server_to_client" or "id" not in _request(exchange)


def _request(exchange: Members) -> Members:
    request = exchange.get("request")
    return request if isinstance(request, dict) else {}


def _params(exchange: Members) -> Members:
    params = _request(exchange).get("params")
    return params if isinstance(params, dict) else {}


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else -1


def _moment(stamp: Any) -> float:
    try:
        return datetime.fromisoformat(str(stamp)).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0
