"""The almanac as its clients see it: a legacy server on stdio."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from pactgate.demo import almanac
from pactgate.protocol.versions import LEGACY_VERSIONS
from tests.demo.child import Child, legacy, modern


@pytest.fixture(scope="module")
def server() -> Iterator[Child]:
    with legacy() as child:
        yield child


def call(server: Child, name: str, **arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = server.ask("tools/call", {"name": name, "arguments": arguments})["result"]
    return result


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
def test_each_legacy_revision_is_echoed_and_gets_only_the_fields_it_has(version: str) -> None:
    with legacy(version) as child:
        tool = child.ask("tools/list", {})["result"]["tools"][0]
        result = call(child, "date_facts", date="2026-11-16")
        assert ("annotations" in tool) == (version >= "2025-03-26")
        assert ("outputSchema" in tool) == ("title" in tool) == (version >= "2025-06-18")
        assert ("structuredContent" in result) == (version >= "2025-06-18")


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
        assert child.ask("initialize", {"protocolVersion": "2025-11-25"})["error"]["code"] == -32600


def test_batches_are_read_where_the_revision_has_them() -> None:
    batch = [
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/whatever"},
        {"jsonrpc": "2.0", "id": "b", "method": "nothing"},
    ]
    with legacy("2025-03-26") as child:
        child.send(batch)
        answers = child.read()
        assert [(answer["id"], "result" in answer) for answer in answers] == [("a", True), ("b", False)]
    with legacy("2025-11-25") as child:
        child.send(batch)
        assert child.read()["error"]["code"] == -32600


def test_every_definition_is_a_valid_schema_with_a_title_and_a_description_for_everything() -> None:
    for tool in almanac.TOOLS:
        definition = tool.definition()
        for schema in (definition["inputSchema"], definition["outputSchema"]):
            jsonschema.Draft202012Validator.check_schema(schema)
        assert definition["title"]
        assert definition["annotations"]["readOnlyHint"] is True
        assert all(property_["description"] for property_ in definition["inputSchema"]["properties"].values())


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("date_facts", {"date": "2027-01-01"}, {"weekday": "Friday", "isoWeek": "2026-W53", "daysLeftInYear": 364}),
        (
            "date_facts",
            {"date": "2024-12-31"},
            {"isLeapYear": True, "dayOfYear": 366, "daysLeftInYear": 0, "quarter": 4},
        ),
        ("days_between", {"start": "2026-11-16", "end": "2026-12-25"}, {"days": 39, "weeks": 5.57, "workingDays": 29}),
        (
            "days_between",
            {"start": "2026-12-25", "end": "2026-11-16"},
            {"days": -39, "weeks": -5.57, "workingDays": -29},
        ),
        ("days_between", {"start": "2026-11-21", "end": "2026-11-23"}, {"days": 2, "weeks": 0.29, "workingDays": 0}),
        (
            "convert_units",
            {"value": 100, "from": "F", "to": "C"},
            {"result": 37.7777777778, "dimension": "temperature"},
        ),
        ("convert_units", {"value": 1, "from": "mi", "to": "km"}, {"result": 1.609344, "dimension": "length"}),
        ("convert_units", {"value": 2, "from": "GiB", "to": "MB"}, {"result": 2147.483648, "dimension": "data"}),
        ("moon_phase", {"date": "2026-08-12"}, {"phase": "new moon", "illuminatedPercent": 0}),
        ("sun_times", {"latitude": 0, "longitude": 0, "date": "2026-03-20"}, {"timeZone": "UTC", "place": "0, 0"}),
        (
            "sun_times",
            {"place": " tromso ", "date": "2026-06-21"},
            {"sunrise": None, "sunset": None, "daylightMinutes": 1440},
        ),
    ],
)
def test_a_tool_answers_in_text_and_in_structure_that_fits_its_schema(
    server: Child, name: str, arguments: dict[str, Any], expected: dict[str, Any]
) -> None:
    result = call(server, name, **arguments)
    structured = result["structuredContent"]
    schema = next(tool.output_schema for tool in almanac.TOOLS if tool.name == name)
    jsonschema.validate(structured, schema)
    assert {key: structured[key] for key in expected} == expected
    assert result["isError"] is False
    assert result["content"][0]["text"]


@pytest.mark.parametrize("name", ["sun_times", "moon_phase", "date_facts"])
def test_a_date_left_out_means_today(server: Child, name: str) -> None:
    place = {"place": "Lisbon"} if name == "sun_times" else {}
    assert call(server, name, **place)["isError"] is False


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [
        ("date_facts", {"date": "2026-02-30"}, "date"),
        ("date_facts", {"date": "20261116"}, "date"),
        ("date_facts", {"date": 5}, "date"),
        ("date_facts", {"day": "2026-02-01"}, "day"),
        ("days_between", {"start": "2026-02-01"}, "end"),
        ("sun_times", {}, "place"),
        ("sun_times", {"place": "Lisbon", "latitude": 1}, "place"),
        ("sun_times", {"place": "Atlantis"}, "Atlantis"),
        ("sun_times", {"latitude": 91, "longitude": 0}, "latitude"),
        ("sun_times", {"latitude": -91, "longitude": 0}, "latitude"),
        ("sun_times", {"latitude": True, "longitude": 0}, "latitude"),
        ("sun_times", {"place": "x" * 101}, "place"),
        ("moon_phase", {"date": "0001-01-01"}, "1900"),
        ("moon_phase", {"date": "9999-12-31"}, "1900"),
        ("convert_units", {"value": 1, "from": "F", "to": "kg"}, "temperature"),
        ("convert_units", {"value": 1, "from": "parsec", "to": "km"}, "parsec"),
        ("convert_units", {"value": -1, "from": "K", "to": "C"}, "absolute zero"),
        ("convert_units", {"value": 10**400, "from": "m", "to": "km"}, "too large"),
        ("convert_units", {"value": 1.7e308, "from": "km", "to": "mm"}, "too large"),
    ],
)
def test_bad_input_is_a_result_that_says_what_is_wrong(
    server: Child, name: str, arguments: dict[str, Any], named: str
) -> None:
    result = call(server, name, **arguments)
    assert result["isError"] is True
    assert named in result["content"][0]["text"]
    assert "structuredContent" not in result


@pytest.mark.parametrize("params", [{"name": "nothing"}, {}, {"name": 5}, {"name": "date_facts", "arguments": []}])
def test_an_unknown_tool_or_arguments_of_another_shape_are_invalid_params(
    server: Child, params: dict[str, Any]
) -> None:
    assert server.ask("tools/call", params)["error"]["code"] == -32602
