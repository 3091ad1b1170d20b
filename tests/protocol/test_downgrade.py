"""Older callers get what they can read, and what they can read is not touched."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from pactgate.protocol import downgrade
from pactgate.protocol.messages import encode_json, members
from pactgate.protocol.versions import LEGACY_VERSIONS

LINK = {
    "type": "resource_link",
    "uri": "file:///a",
    "name": "a",
    "description": "the first",
    "annotations": {"priority": 1},
}
SOUND = {"type": "audio", "data": "UklG", "mimeType": "audio/wav"}
EMBEDDED = {"type": "resource", "resource": {"uri": "file:///b", "text": "b", "odd": None}}
SAID = {"type": "text", "text": "said"}


def fitted(result: dict[str, Any], version: str) -> dict[str, Any]:
    held = members(encode_json(result))
    downgrade.fit_tool_result(held, version)
    return dict(json.loads(encode_json(held)))


def blocks(content: list[Any], version: str) -> list[Any]:
    return list(json.loads(bytes(downgrade.fit_content(Raw(encode_json(content)), version))))


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
@pytest.mark.parametrize("value", [[1, 2], "text", 7, None, True])
def test_structured_content_that_is_no_object_becomes_text_for_every_legacy_caller(version: str, value: Any) -> None:
    result = fitted({"content": [], "structuredContent": value}, version)
    assert "structuredContent" not in result
    assert json.loads(result["content"][0]["text"]) == value


def test_text_that_is_there_already_is_not_said_twice() -> None:
    assert fitted({"content": [SAID], "structuredContent": [1]}, "2025-11-25") == {"content": [SAID]}


@pytest.mark.parametrize(
    ("version", "is_kept"), [("2024-11-05", False), ("2025-03-26", False), ("2025-06-18", True), ("2025-11-25", True)]
)
def test_structured_objects_go_to_who_knows_them(version: str, is_kept: bool) -> None:
    result = fitted({"content": [SAID], "structuredContent": {"a": 1}, "odd": None}, version)
    assert ("structuredContent" in result) == is_kept
    assert result["content"] == [SAID]
    assert "odd" in result


@pytest.mark.parametrize("content", [None, [], [LINK], [SOUND, LINK]])
def test_what_is_said_instead_comes_behind_what_was_said(content: list[Any] | None) -> None:
    said = {"structuredContent": [1], **({} if content is None else {"content": content})}
    assert fitted(said, "2025-11-25")["content"] == [*(content or []), {"type": "text", "text": "[1]"}]


def test_links_become_text_before_2025_06_18() -> None:
    expected = {"type": "text", "text": "a: file:///a (the first)", "annotations": {"priority": 1}}
    assert blocks([LINK, SAID], "2025-03-26") == [expected, SAID]
    assert blocks([LINK], "2025-06-18") == [LINK]


def test_sounds_become_embedded_resources_before_2025_03_26() -> None:
    held = {"uri": "data:audio/wav", "mimeType": "audio/wav", "blob": "UklG"}
    assert blocks([SOUND], "2024-11-05") == [{"type": "resource", "resource": held}]
    assert blocks([SOUND], "2025-03-26") == [SOUND]


def test_links_and_embedded_resources_lead_back_to_their_server_and_nothing_else_changes() -> None:
    odd = {"type": "hologram", "uri": "file:///c", "n": 18446744073709551616}
    content = Raw(encode_json([LINK, EMBEDDED, odd, {"type": "resource"}, {"type": "resource_link", "uri": 7}]))
    named = json.loads(bytes(downgrade.name_uris(content, lambda uri: "s+" + uri)))
    assert named[0] == {**LINK, "uri": "s+file:///a"}
    assert named[1]["resource"] == {"uri": "s+file:///b", "text": "b", "odd": None}
    assert named[2:] == [odd, {"type": "resource"}, {"type": "resource_link", "uri": 7}]


@pytest.mark.parametrize("content", [b'[{"type":"text","text":"a"}]', b'["resource"]', b'{"resource":1}'])
def test_content_that_has_no_uris_is_returned_as_it_is(content: bytes) -> None:
    held = Raw(content)
    assert downgrade.name_uris(held, lambda uri: "never") is held


def test_the_messages_of_a_prompt_are_fitted_each() -> None:
    found = [{"role": "user", "content": LINK}, {"role": "assistant", "content": [EMBEDDED, SAID]}]
    named = downgrade.fit_messages(
        Raw(encode_json(found)), lambda held: downgrade.name_uris(held, lambda uri: "s+" + uri)
    )
    said = json.loads(bytes(named))
    assert said[0]["content"]["uri"] == "s+file:///a"
    assert said[1]["content"][0]["resource"]["uri"] == "s+file:///b"
    odd = Raw(b'[{"role":"user"}]')
    assert downgrade.fit_messages(odd, lambda held: held) is odd


def tool(**more: Any) -> bytes:
    return encode_json({"name": "t", "inputSchema": {"type": "object"}, **more})


@pytest.mark.parametrize(
    ("version", "schema", "is_shown"),
    [
        ("2024-11-05", {"type": "object"}, False),
        ("2025-03-26", {"type": "object"}, False),
        ("2025-06-18", {"type": "object"}, True),
        ("2025-11-25", {"type": "array"}, False),
        ("2025-11-25", {"anyOf": [{"type": "object"}]}, False),
        ("2026-07-28", {"type": "array"}, True),
        ("2026-07-28", True, True),
    ],
)
def test_an_output_schema_is_shown_where_its_results_can_be(version: str, schema: Any, is_shown: bool) -> None:
    shown = json.loads(downgrade.fit_tool(tool(outputSchema=schema), downgrade.list_shape(version)))
    assert ("outputSchema" in shown) == is_shown


def test_how_to_run_a_tool_as_a_task_is_shown_to_legacy_callers_only() -> None:
    definition = tool(execution={"taskSupport": "optional"})
    assert "execution" not in json.loads(downgrade.fit_tool(definition, downgrade.MODERN_SHAPE))
    assert downgrade.fit_tool(definition, downgrade.list_shape("2025-11-25")) is definition


def test_a_definition_without_either_is_returned_as_it_is() -> None:
    definition = tool()
    assert all(
        downgrade.fit_tool(definition, shape) is definition for shape in ("", "2025-06-18", downgrade.MODERN_SHAPE)
    )


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({"ui": {"resourceUri": "ui://v", "odd": 1}, "x": 2}, {"ui": {"resourceUri": "s+ui://v", "odd": 1}, "x": 2}),
        ({"ui/resourceUri": "ui://v"}, {"ui/resourceUri": "s+ui://v"}),
        ({"ui": {"resourceUri": 7}}, {"ui": {"resourceUri": 7}}),
    ],
)
def test_the_view_of_a_tool_is_named_as_its_resources_are(meta: dict[str, Any], expected: dict[str, Any]) -> None:
    named = json.loads(downgrade.name_ui(tool(_meta=meta), lambda uri: "s+" + uri))
    assert named["_meta"] == expected
