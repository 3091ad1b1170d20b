"""One reading of a session for all rules: eras, revisions, capabilities, lists, what is open."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.capture.format import read
from pactgate.capture.source import chunks_of_value
from pactgate.conformance.runner import judge
from pactgate.conformance.selection import RuleSelection
from pactgate.conformance.session_state import ReadingOptions, SessionState
from pactgate.protocol.versions import Era
from tests.conformance.captures import HINTS, call, capture, handshake, modern, notice, request


def seen(session: Any, era: Era | None = None) -> SessionState:
    for recorded in read(chunks_of_value(session)):
        return judge(RuleSelection((), frozenset()), recorded, ReadingOptions(era))[1]
    raise AssertionError("no session")


LISTED = modern(1, "tools/list", {**HINTS, "tools": []})


@pytest.mark.parametrize(
    ("exchanges", "head", "era"),
    [
        ([], {}, Era.LEGACY),
        ([call(1, "tools/list", None, {})], {}, Era.LEGACY),
        ([call(1, "tools/list", None, {})], {"era": "modern"}, Era.MODERN),
        ([LISTED], {}, Era.MODERN),
        ([LISTED], {"era": "legacy"}, Era.MODERN),
        ([LISTED, *handshake()], {}, Era.LEGACY),
        ([modern(1, "initialize", {})], {}, Era.MODERN),
        ([call(1, "x", None, {}, http={"request_headers": {"MCP-Protocol-Version": "2026-07-28"}})], {}, Era.MODERN),
        ([call(1, "x", None, {}, http={"request_headers": {"MCP-Protocol-Version": "2025-06-18"}})], {}, Era.LEGACY),
    ],
)
def test_the_era_is_what_the_messages_say_and_the_head_only_where_they_say_nothing(
    exchanges: list[Any], head: dict[str, Any], era: Era
) -> None:
    assert seen(capture(*exchanges, **head)).era is era


def test_the_era_can_be_given() -> None:
    assert seen(capture(LISTED), Era.LEGACY).era is Era.LEGACY


def test_the_revision_is_the_negotiated_one_else_that_of_the_head() -> None:
    assert seen(capture(*handshake("2025-03-26"))).versions == {"2025-03-26"}
    assert seen(capture(call(1, "x", None, {}), protocol_version="2025-06-18")).versions == {"2025-06-18"}
    assert seen(capture(call(1, "initialize", None, {"protocolVersion": "2031-01-01"}))).versions == {None}
    assert seen(capture(LISTED)).versions == {"2026-07-28"}
    opening, initialized = handshake("2025-03-26")
    numbered = capture({**opening, "seq": 1, "response_seq": 2}, {**initialized, "seq": 3})
    assert seen(numbered).versions == {"2025-03-26"}, "also where the answer is looked at later"


def test_what_the_server_can_do_is_the_block_else_its_own_words() -> None:
    opened = handshake(capabilities={"prompts": {}})
    assert seen(capture(*opened, capabilities={"tools": {}})).advertised == {"tools": {}}
    assert seen({"exchanges": [*opened]}).advertised == {"prompts": {}}
    discovery = modern(1, "server/discover", {**HINTS, "capabilities": {"logging": {}}})
    assert seen({"exchanges": [discovery]}).advertised == {"logging": {}}
    assert seen({"exchanges": []}).advertised is None


def test_pages_make_one_listing_and_a_new_one_starts_without_a_cursor() -> None:
    def page(id_: int, names: str, cursor: str | None = None, following: str | None = None) -> dict[str, Any]:
        result: dict[str, Any] = {"tools": [{"name": name} for name in names]}
        if following is not None:
            result["nextCursor"] = following
        return call(id_, "tools/list", None if cursor is None else {"cursor": cursor}, result)

    first = seen(capture(page(1, "ab", following="2"))).lists["tools/list"]
    assert (first.names, first.is_whole) == (["a", "b"], False)
    whole = seen(capture(page(1, "ab", following="2"), page(2, "c", cursor="2"))).lists["tools/list"]
    assert (whole.names, whole.is_whole) == (["a", "b", "c"], True)
    again = seen(capture(page(1, "ab"), page(2, "d"))).lists["tools/list"]
    assert (list(again.items), list(again.ever)) == (["d"], ["a", "b", "d"])


def test_an_answer_closes_its_request_in_its_own_exchange_or_later() -> None:
    late = {"seq": 9, "response": {"jsonrpc": "2.0", "id": 2, "result": {}}}
    assert not seen(capture(call(1, "x", None, {}), {"request": request(2, "y")}, late)).open
    assert len(seen(capture({"request": request(2, "y")})).open) == 1


def test_a_new_handshake_begins_new_ids() -> None:
    session = seen(capture(*handshake(), *handshake(id_=1)))
    assert len(session.client_ids) == 2


def test_what_the_server_sent_on_its_own_is_known_to_be_recorded_or_seen() -> None:
    assert not seen(capture(*handshake())).has_server_messages
    assert seen(capture(*handshake(), capture_version=1)).has_server_messages
    changed = notice("notifications/tools/list_changed", direction="server_to_client")
    assert seen(capture(*handshake(), changed)).has_server_messages


def test_http_is_unknown_unless_it_was_recorded_or_can_not_have_been() -> None:
    assert seen(capture()).http_is_unknown
    assert not seen(capture(transport="stdio")).http_is_unknown
    assert not seen(capture(call(1, "x", None, {}, http={"status": 200}))).http_is_unknown
