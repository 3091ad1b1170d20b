"""The almanac as its clients see it: a legacy server on stdio."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from tests.demo.child import Child, legacy, modern


@pytest.fixture(scope="module")
def server() -> Iterator[Child]:
    with legacy() as child:
        yield child


def call(server: Child, name: str, **arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = server.ask("tools/call", {"name": name, "arguments": arguments})["result"]
    return result


def test_an_unknown_revision_is_answered_with_the_newest_one() -> None:
    with Child("almanac") as child:
        assert child.ask("initialize", {"protocolVersion": "1999-01-01"})["result"]["protocolVersion"] == "2025-11-25"


def test_the_modern_probe_is_an_unknown_method_and_the_handshake_still_works_after_it() -> None:
    with Child("almanac") as child:
        assert child.ask("server/discover", modern())["error"]["code"] == -32601
        assert child.ask("initialize", {"protocolVersion": "2025-11-25"})["result"]["serverInfo"]["name"] == "almanac"


def test_nothing_but_ping_works_before_the_handshake_and_there_is_only_one() -> None:
    with Child("almanac") as child:
        assert child.ask("ping", {})["result"] == {}
        assert child.ask("tools/list", {})["error"]["code"] == -32600
        assert child.ask("initialize", {})["error"]["code"] == -32602
        assert "result" in child.ask("initialize", {"protocolVersion": "2025-11-25"})
        assert child.ask("initialize", {"protocolVersion": "2025-11-25"})["error"]["code"] == -32602


def test_every_definition_is_a_valid_schema_with_a_title_and_a_description_for_everything(server: Child) -> None:
    for definition in server.ask("tools/list", {})["result"]["tools"]:
        for schema in (definition["inputSchema"], definition["outputSchema"]):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
        assert definition["title"]
        assert definition["description"]
        assert definition["annotations"]["readOnlyHint"] is True
        assert all(property_["description"] for property_ in definition["inputSchema"]["properties"].values())


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("date_facts", {"date": "2027-01-01"}, {"weekday": "Friday", "isoWeek": "2026-W53", "dayOfYear": 1}),
        ("date_facts", {"date": "2024-12-31"}, {"weekday": "Tuesday", "dayOfYear": 366}),
        ("days_between", {"start": "2026-11-16", "end": "2026-12-25"}, {"days": 39, "weeks": 5.57}),
        ("days_between", {"start": "2026-12-25", "end": "2026-11-16"}, {"days": -39, "weeks": -5.57}),
        ("convert_units", {"value": 1, "from": "mi", "to": "km"}, {"result": 1.609344, "dimension": "length"}),
        ("convert_units", {"value": 90, "from": "min", "to": "h"}, {"result": 1.5, "dimension": "time"}),
    ],
)
def test_a_tool_answers_in_text_and_in_structure_that_fits_its_schema(
    server: Child, name: str, arguments: dict[str, Any], expected: dict[str, Any]
) -> None:
    result = call(server, name, **arguments)
    structured = result["structuredContent"]
    tools = {tool["name"]: tool for tool in server.ask("tools/list", {})["result"]["tools"]}
    jsonschema.validate(structured, tools[name]["outputSchema"])
    assert {key: structured[key] for key in expected} == expected
    assert result["isError"] is False
    assert result["content"][0]["text"]


def test_a_date_left_out_means_today(server: Child) -> None:
    assert call(server, "date_facts")["isError"] is False


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [
        ("date_facts", {"date": "2026-02-30"}, "date"),
        ("date_facts", {"date": 5}, "date"),
        ("date_facts", {"day": "2026-02-01"}, "day"),
        ("days_between", {"start": "2026-02-01"}, "end"),
        ("convert_units", {"value": 1, "from": "h", "to": "kg"}, "mass: kg"),
        ("convert_units", {"value": 1, "from": "parsec", "to": "km"}, "parsec"),
        ("convert_units", {"value": 1e101, "from": "m", "to": "km"}, "value"),
        ("convert_units", [], "object"),
    ],
)
def test_bad_input_is_a_result_that_says_what_is_wrong(server: Child, name: str, arguments: Any, named: str) -> None:
    result = server.ask("tools/call", {"name": name, "arguments": arguments})["result"]
    assert result["isError"] is True
    assert named in result["content"][0]["text"]
    assert "structuredContent" not in result


@pytest.mark.parametrize("params", [{"name": "nothing"}, {}, {"name": 5}])
def test_an_unknown_tool_is_invalid_params(server: Child, params: dict[str, Any]) -> None:
    assert server.ask("tools/call", params)["error"]["code"] == -32602
