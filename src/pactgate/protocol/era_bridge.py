"""What a server asks back of a caller, in both eras' words: a request of its own (legacy), or a round of `input_required` (modern).

Says which capabilities of a caller can be honoured through the gateway, whether a question is covered by them, and
how question, round and answers are spelt on each side. Pure: asks nobody. Must not: change what is asked beyond what
the other era requires.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from pactgate.protocol import messages
from pactgate.protocol.messages import ErrorReply, encode_json
from pactgate.protocol.modern import without_envelope
from pactgate.protocol.versions import Era

ELICIT: Final = "elicitation/create"
SAMPLE: Final = "sampling/createMessage"
LIST_ROOTS: Final = "roots/list"
COMPLETED: Final = "notifications/elicitation/complete"
ROOTS_CHANGED: Final = "notifications/roots/list_changed"
QUESTIONS: Final = {ELICIT: "elicitation", SAMPLE: "sampling", LIST_ROOTS: "roots"}
"""What a server may ask, and the capability of the caller that covers it."""
_ASKED_BY: Final = frozenset(QUESTIONS.values())

INPUT_REQUIRED_METHODS: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Requests whose modern answer may be a round of questions."""

INPUT_REQUIRED: Final = "input_required"
RESPONSES: Final = "inputResponses"
STATE: Final = "requestState"
MAX_IN_A_ROUND: Final = 32
CANCELLED_BY_CALLER: Final = b'{"action":"cancel"}'

_TASKS: Final = "io.modelcontextprotocol/tasks"
_ELICITATION_SINCE: Final = "2025-06-18"
_RICH_SINCE: Final = "2025-11-25"
"""Elicitation by URL and with a named mode, sampling with tools."""
INPUT_REQUIRED_MARK: Final = b"input_required"
"""Without this, an answer is no round."""


class Question(Struct, frozen=True, gc=False):
    """One thing a server wants to know. `params` is a JSON object or nothing."""

    method: str
    params: bytes | None = None


class InputRequiredResult(Struct, frozen=True):
    """A modern server's answer that asks instead: questions by the server's own keys, and what it wants to see again."""

    questions: dict[str, Question]
    state: str | None


class _InputRequest(Struct):
    method: str
    params: Raw | UnsetType = UNSET


class _Kind(Struct):
    resultType: Any = None  # noqa: N815 - the wire's spelling


class _InputRequired(Struct):
    resultType: str = "complete"  # noqa: N815 - the wire's spelling
    inputRequests: dict[str, _InputRequest] = {}  # noqa: N815
    requestState: str | None = None  # noqa: N815


class _UrlsRequired(Struct):
    elicitations: list[dict[str, Raw]]


_required: Final = msgspec.json.Decoder(_UrlsRequired)
_kind: Final = msgspec.json.Decoder(_Kind)
_round: Final = msgspec.json.Decoder(_InputRequired)
_objects: Final = msgspec.json.Decoder(dict[str, dict[str, Raw]])


def relayable(
    capabilities: Mapping[str, Any], version: str, *, towards: Era, follows_tasks: bool = False
) -> dict[str, Any]:
    """Those capabilities of a caller that hold for a server behind the gateway, as a server of that era knows them.

    Tasks are left out, except for a caller that can follow them: on the server's own path, in the server's own era.
    """
    kept: dict[str, Any] = {}
    is_rich = version >= _RICH_SINCE
    if _is_declared(capabilities, "sampling"):
        kept["sampling"] = capabilities["sampling"] if is_rich else {}
    if _is_declared(capabilities, "elicitation") and version >= _ELICITATION_SINCE:
        kept["elicitation"] = capabilities["elicitation"] if is_rich else {}
    if _is_declared(capabilities, "roots"):
        says_changes = towards is Era.LEGACY and capabilities["roots"].get("listChanged") is True
        kept["roots"] = {"listChanged": True} if says_changes else {}
    extensions = capabilities.get("extensions")
    if isinstance(extensions, dict):
        others = {name: held for name, held in extensions.items() if follows_tasks or name != _TASKS}
        if others:
            kept["extensions"] = others
    return kept


def can_be_asked(capabilities: Mapping[str, Any]) -> bool:
    return not _ASKED_BY.isdisjoint(capabilities)


def why_not(question: Question, capabilities: Mapping[str, Any]) -> tuple[int, str] | None:
    """Why the caller can't be asked this, as a JSON-RPC error, or None."""
    name = QUESTIONS.get(question.method)
    if name is None or not _is_declared(capabilities, name):
        return messages.METHOD_NOT_FOUND, f"{question.method} is not offered by this client"
    try:
        params = messages.members(question.params or b"{}")
    except msgspec.DecodeError:
        return messages.INVALID_PARAMS, "the params must be an object"
    declared = capabilities[name]
    if question.method == ELICIT and _is_url(params) and "url" not in declared:
        return messages.INVALID_PARAMS, "elicitation in mode url is not offered by this client"
    if question.method == ELICIT and not _is_url(params) and "url" in declared and "form" not in declared:
        return messages.INVALID_PARAMS, "elicitation in mode form is not offered by this client"
    if question.method == SAMPLE and ("tools" in params or "toolChoice" in params) and "tools" not in declared:
        return messages.INVALID_PARAMS, "sampling with tools is not offered by this client"
    return None


def for_modern(question: Question) -> dict[str, Any]:
    """A legacy server's request as an entry of `inputRequests`: without what only that era has."""
    if question.params is None:
        return {"method": question.method}
    members = messages.members(question.params)
    for name in ("elicitationId", "task"):
        members.pop(name, None)
    _strip_meta(members)
    return {"method": question.method, "params": members} if members else {"method": question.method}


def for_legacy(question: Question, version: str, elicitation_id: str) -> bytes:
    """The params of the request by which a legacy caller of this revision is asked; a URL needs an id there."""
    members = messages.members(question.params or b"{}")
    members.pop("task", None)
    _strip_meta(members)
    if question.method == ELICIT:
        if _is_url(members):
            members.setdefault("elicitationId", Raw(encode_json(elicitation_id)))
        elif version < _RICH_SINCE:
            members.pop("mode", None)
    return encode_json(members)


def read_input_required(result: bytes) -> InputRequiredResult | None:
    """The questions of a modern answer; None for one that is complete. Raises msgspec.DecodeError for a misshapen round."""
    if INPUT_REQUIRED_MARK not in result or _kind.decode(result).resultType != INPUT_REQUIRED:
        return None
    read = _round.decode(result)
    if not read.inputRequests and read.requestState is None:
        raise msgspec.ValidationError("it is input_required and asks nothing")
    if len(read.inputRequests) > MAX_IN_A_ROUND:
        raise msgspec.ValidationError(f"it asks more than {MAX_IN_A_ROUND} questions at once")
    return InputRequiredResult({key: _question(item) for key, item in read.inputRequests.items()}, read.requestState)


def encode_input_required(questions: Mapping[str, Question], state: str) -> bytes:
    """A round of ours for a modern caller, from what a legacy server asked."""
    asked = {key: for_modern(question) for key, question in questions.items()}
    return encode_json({"resultType": INPUT_REQUIRED, "inputRequests": asked, STATE: state})


def with_state(result: bytes, state: str) -> bytes:
    """A modern server's round under another state; all else as the server wrote it."""
    members = messages.members(result)
    members[STATE] = Raw(encode_json(state))
    return encode_json(members)


def read_answers(raw: Raw | None) -> dict[str, bytes]:
    """What a modern caller answered, by key. Raises msgspec.DecodeError for anything but an object of objects."""
    if raw is None:
        return {}
    return {key: encode_json(answer) for key, answer in _objects.decode(raw).items()}


def read_urls(reply: ErrorReply) -> list[Question]:
    """The URLs an error of revision 2025-11-25 wants its caller to visit first; none where it is another error, or unreadable."""
    if reply.code != messages.URL_REQUIRED or reply.data is None:
        return []
    try:
        listed = _required.decode(reply.data).elicitations
    except msgspec.DecodeError:
        return []
    if len(listed) > MAX_IN_A_ROUND:
        return []
    return [Question(ELICIT, encode_json({"mode": "url", **item})) for item in listed]


def _question(item: _InputRequest) -> Question:
    if isinstance(item.params, UnsetType):
        return Question(item.method)
    if not bytes(item.params).startswith(b"{"):
        raise msgspec.ValidationError(f"the params of {item.method[:100]!r} are not an object")
    return Question(item.method, bytes(item.params))


def _is_declared(capabilities: Mapping[str, Any], name: str) -> bool:
    return isinstance(capabilities.get(name), dict)


def _is_url(params: Mapping[str, Raw]) -> bool:
    mode = params.get("mode")
    return mode is not None and bytes(mode) == b'"url"'


def _strip_meta(members: dict[str, Raw]) -> None:
    """What describes one connection ends here; what is foreign travels on."""
    raw = members.get("_meta")
    if raw is None or not bytes(raw).startswith(b"{"):
        return
    kept = without_envelope(messages.members(bytes(raw)))
    if kept:
        members["_meta"] = Raw(encode_json(kept))
    else:
        del members["_meta"]
