"""Replays a recorded session against a live server: sends its requests again, in order, and compares the responses.

Works across eras: a handshake is compared with a discovery by what both contain (capabilities, name, instructions), and requests that the
other era has no method for are skipped with a reason. Cursors and request states are replaced by those of the live server. Requests that
change something are sent too. Must not: connect; the session is handed in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Raw, Struct

from pactgate.capture.differences import MAX_SHOWN, Difference, differences
from pactgate.capture.replay_server import BY_METHOD, RecordedCall
from pactgate.core.failures import GatewayFailure
from pactgate.protocol import messages
from pactgate.protocol.messages import encode_json
from pactgate.protocol.modern import SERVER_INFO_KEY
from pactgate.protocol.versions import METHODS, NAMED_BY, Era, exists
from pactgate.upstreams.dialer import Session
from pactgate.upstreams.peer import UpstreamReplyError

_IN_BOTH_ERAS: Final = frozenset({"tools", "prompts", "resources", "completions"})
_REPLACED: Final = {"cursor": "nextCursor", "requestState": "requestState"}
_UNPLAYABLE: Final = frozenset({"subscriptions/listen"})
"""Methods whose request stays open by design, so there is no response to wait for."""


class ReplayedCall(Struct, frozen=True):
    """One request with the differences of its response. `skipped` says why it was not sent."""

    exchange: int
    method: str
    name: str | None
    differences: tuple[Difference, ...] = ()
    more: int = 0
    skipped: str | None = None

    @property
    def is_same(self) -> bool:
        return not self.differences


class ReplayClient:
    def __init__(self, session: Session, timeout_s: float) -> None:
        self._session = session
        self._timeout_s = timeout_s
        self._live: dict[str, Any] = {}
        """The live server's values for the opaque values of the recording."""

    async def play(self, recorded: Iterable[RecordedCall]) -> list[ReplayedCall]:
        return [await self._play(each) for each in recorded]

    async def _play(self, recorded: RecordedCall) -> ReplayedCall:
        method = recorded.method
        named = recorded.params.get(NAMED_BY.get(method, ""))
        name = named if isinstance(named, str) else None
        version = self._session.identity.version
        if method in BY_METHOD:
            if "result" not in recorded.answer:
                return ReplayedCall(recorded.index, method, name, skipped="it was refused when it was recorded")
            era = Era.LEGACY if method == "initialize" else Era.MODERN
            is_other = era is not self._session.identity.era
            return self._compared(
                recorded, name, _told(recorded.answer, is_other=is_other), self._introduction(is_other=is_other)
            )
        if method in _UNPLAYABLE or (method in METHODS and not exists(method, version)):
            return ReplayedCall(recorded.index, method, name, skipped=f"{version} has no such method")
        live = await self._ask(recorded, name)
        self._learn(recorded.answer, live)
        return self._compared(recorded, name, recorded.answer, live)

    async def _ask(self, recorded: RecordedCall, name: str | None) -> dict[str, Any]:
        members = {
            key: Raw(encode_json(self._renewed(key, value))) for key, value in recorded.params.items() if key != "_meta"
        }
        try:
            async with asyncio.timeout(self._timeout_s):
                text = await self._session.peer.request(recorded.method, members, name=name)
        except UpstreamReplyError as refusal:
            reply = refusal.reply
            data = {} if reply.data is None else {"data": messages.value(reply.data)}
            return {"error": {"code": reply.code, "message": reply.message, **data}}
        except GatewayFailure as failure:
            return {"error": {"code": None, "message": failure.message}}
        except TimeoutError:
            return {"error": {"code": None, "message": f"no answer within {self._timeout_s:g} s"}}
        return {"result": messages.value(text)}

    def _introduction(self, *, is_other: bool) -> dict[str, Any]:
        identity = self._session.identity
        capabilities = _common(identity.capabilities) if is_other else identity.capabilities
        told: dict[str, Any] = {"capabilities": capabilities, "serverInfo": identity.server_info}
        if identity.instructions is not None:
            told["instructions"] = identity.instructions
        return {"result": told}

    def _learn(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        was, is_now = before.get("result"), after.get("result")
        if isinstance(was, dict) and isinstance(is_now, dict):
            for member in ("nextCursor", "requestState"):
                if isinstance(was.get(member), str) and member in is_now:
                    self._live[f"{member} {was[member]}"] = is_now[member]

    def _renewed(self, key: str, value: Any) -> Any:
        return self._live.get(f"{_REPLACED[key]} {value}", value) if key in _REPLACED else value

    def _compared(self, recorded: RecordedCall, name: str | None, before: Any, after: Any) -> ReplayedCall:
        found = differences(before, after)
        return ReplayedCall(
            recorded.index, recorded.method, name, tuple(found[:MAX_SHOWN]), max(0, len(found) - MAX_SHOWN)
        )


def _common(capabilities: Any) -> Any:
    """The names of capabilities that both eras have; their contents differ between eras."""
    return sorted(_IN_BOTH_ERAS & capabilities.keys()) if isinstance(capabilities, dict) else capabilities


def _told(answer: dict[str, Any], *, is_other: bool) -> dict[str, Any]:
    """The parts of a handshake or discovery that both eras have."""
    result = answer["result"] if isinstance(answer["result"], dict) else {}
    meta = result.get("_meta")
    info = result.get("serverInfo") or (meta.get(SERVER_INFO_KEY) if isinstance(meta, dict) else None) or {}
    capabilities = result.get("capabilities", {})
    told: dict[str, Any] = {"capabilities": _common(capabilities) if is_other else capabilities, "serverInfo": info}
    if isinstance(result.get("instructions"), str):
        told["instructions"] = result["instructions"]
    return {"result": told}
