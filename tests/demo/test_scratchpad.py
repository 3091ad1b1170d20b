"""The scratchpad as its clients see it: a modern server on stdio."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from pactgate.demo import scratchpad
from tests.demo.child import ENVELOPE, PREFIX, Child, modern


@pytest.fixture
def server() -> Iterator[Child]:
    with Child("scratchpad") as child:
        yield child


def call(server: Child, name: str, **arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = server.ask("tools/call", modern(name=name, arguments=arguments))["result"]
    return result


def test_discover_names_the_one_version_the_capabilities_and_how_long_they_hold(server: Child) -> None:
    result = server.ask("server/discover", modern())["result"]
    assert result["resultType"] == "complete"
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["capabilities"] == {"tools": {}}
    assert (result["ttlMs"], result["cacheScope"]) == (300_000, "public")
    assert result["_meta"][PREFIX + "serverInfo"]["name"] == "scratchpad"


def test_initialize_is_refused_with_the_versions_served(server: Child) -> None:
    error = server.ask("initialize", {"protocolVersion": "2025-11-25"})["error"]
    assert (error["code"], error["data"]) == (-32022, {"supported": ["2026-07-28"], "requested": "2025-11-25"})


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        (None, -32602),
        ({}, -32602),
        ({PREFIX + "protocolVersion": "2026-07-28"}, -32602),
        ({PREFIX + "clientCapabilities": {}}, -32602),
        ({**ENVELOPE, PREFIX + "clientCapabilities": []}, -32602),
        ({**ENVELOPE, PREFIX + "protocolVersion": "2025-11-25"}, -32022),
    ],
)
def test_each_request_is_admitted_by_its_own_envelope(server: Child, meta: Any, code: int) -> None:
    assert server.ask("tools/list", {} if meta is None else {"_meta": meta})["error"]["code"] == code


@pytest.mark.parametrize("method", ["ping", "logging/setLevel", "resources/list", "nothing"])
def test_methods_it_does_not_have_are_not_found(server: Child, method: str) -> None:
    assert server.ask(method, modern())["error"]["code"] == -32601


def test_every_definition_is_a_valid_schema_with_a_title_and_a_description_for_everything(server: Child) -> None:
    listed = server.ask("tools/list", modern())["result"]
    assert (listed["ttlMs"], listed["cacheScope"], listed["resultType"]) == (300_000, "public", "complete")
    assert [tool["name"] for tool in listed["tools"]] == [
        "note_add",
        "note_list",
        "countdown",
    ]
    for definition in listed["tools"]:
        for schema in (definition["inputSchema"], definition["outputSchema"]):
            jsonschema.Draft202012Validator.check_schema(schema)
        assert definition["title"]
        assert definition["annotations"]["readOnlyHint"] is (definition["name"] != "note_add")
        assert all(property_["description"] for property_ in definition["inputSchema"]["properties"].values())


def test_what_is_noted_is_found_and_listed_newest_first(server: Child) -> None:
    schemas = {tool["name"]: tool["outputSchema"] for tool in server.ask("tools/list", modern())["result"]["tools"]}
    added = call(server, "note_add", text="Buy milk")
    call(server, "note_add", text="Café in Lisbon is good")
    found = call(server, "note_list", query="MILK")
    listed = call(server, "note_list")
    assert found["structuredContent"] == {"notes": ["Buy milk"], "count": 1}
    assert listed["structuredContent"]["notes"] == ["Café in Lisbon is good", "Buy milk"]
    assert call(server, "note_list", limit=1)["structuredContent"]["count"] == 2
    assert call(server, "note_list", query="tea")["structuredContent"] == {"notes": [], "count": 0}
    for name, result in (("note_add", added), ("note_list", found), ("note_list", listed)):
        jsonschema.validate(result["structuredContent"], schemas[name])


def test_a_full_scratchpad_says_so_and_keeps_what_it_has(server: Child) -> None:
    for number in range(scratchpad.MAX_NOTES):
        call(server, "note_add", text=str(number))
    assert call(server, "note_add", text="one too many")["isError"] is True
    assert call(server, "note_list")["structuredContent"]["count"] == scratchpad.MAX_NOTES


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("note_add", {}),
        ("note_add", {"text": ""}),
        ("note_add", {"text": "x" * (scratchpad.MAX_NOTE_CHARS + 1)}),
        ("note_add", {"text": "x", "tags": ["shop"]}),
        ("note_list", {"limit": 101}),
        ("countdown", {"steps": 0}),
        ("countdown", {"steps": 1.5}),
    ],
)
def test_bad_input_is_a_result_that_says_so(server: Child, name: str, arguments: dict[str, Any]) -> None:
    assert call(server, name, **arguments)["isError"] is True


def test_a_countdown_reports_progress_only_to_those_who_asked(server: Child) -> None:
    silent = server.ask("tools/call", modern(name="countdown", arguments={"steps": 2, "intervalMs": 1}))
    assert silent["result"]["structuredContent"] == {"steps": 2, "intervalMs": 1}
    server.start(
        "tools/call", modern(name="countdown", arguments={"steps": 3, "intervalMs": 1}, _meta={"progressToken": 0})
    )
    heard = [server.read() for _ in range(4)]
    assert [message.get("method") for message in heard] == ["notifications/progress"] * 3 + [None]
    assert [message["params"]["progress"] for message in heard[:3]] == [1, 2, 3]
    assert all(message["params"]["progressToken"] == 0 and message["params"]["total"] == 3 for message in heard[:3])


def test_a_slow_call_holds_nobody_up_and_is_never_answered_once_cancelled(server: Child) -> None:
    slow = server.start("tools/call", modern(name="countdown", arguments={"steps": 1, "intervalMs": 10_000}))
    assert call(server, "note_list")["isError"] is False
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow}})
    # An answer to the cancelled call would come first: it ends at once, this one takes a tenth of a second.
    assert server.ask("tools/call", modern(name="countdown", arguments={"steps": 1, "intervalMs": 100}))["result"]


def test_slow_calls_beyond_the_bound_are_refused(server: Child) -> None:
    params = modern(name="countdown", arguments={"steps": 1, "intervalMs": 10_000})
    started = [server.start("tools/call", params) for _ in range(16)]
    refused = server.ask("tools/call", params)
    assert refused["error"]["code"] == -32603
    for identity in started:
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": identity}})
    assert server.ask("tools/list", modern())["result"]
