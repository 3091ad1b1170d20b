"""From type hints and a docstring to schemas, and what can't become one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from jsonschema import Draft202012Validator
from msgspec import Meta, Struct

from pactgate.policy.schema.validation import Schema, compile_schema
from pactgate.runner.signature import ServedTool, serve
from pactgate.tool_values import Call
from pactgate.tools import MARK, tool


class Colour(Enum):
    RED = "red"


class Item(Struct):
    """A thing."""

    name: str
    count: int = 1
    parts: list[Item] = []


@dataclass
class Point:
    x: int
    y: int


class Row(TypedDict):
    name: str


class Foreign:
    pass


def served(function: Any) -> ServedTool:
    found = serve(getattr(tool(category="query", idempotent=True, effects=[])(function), MARK))
    assert isinstance(found, ServedTool), found
    return found


def refused(function: Any) -> str:
    found = serve(getattr(tool(category="query", idempotent=True, effects=[])(function), MARK))
    assert isinstance(found, list)
    return " ".join(found)


def definition(function: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(served(function).definition)
    return found


@pytest.mark.requirement("S2/MCP-001")
def test_type_hints_and_a_docstring_become_a_closed_input_schema() -> None:
    def find(word: Annotated[str, Meta(min_length=1)], limit: int = 5, *, tags: list[str] = [], call: Call) -> None:  # noqa: B006
        """Finds things.

        Args:
            word: What to look for,
                whatever its case.
            limit (int): How many.

        Returns:
            word: not a parameter.
        """

    assert definition(find)["inputSchema"] == {
        "type": "object",
        "properties": {
            "word": {"type": "string", "minLength": 1, "description": "What to look for, whatever its case."},
            "limit": {"type": "integer", "default": 5, "description": "How many."},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
        },
        "required": ["word"],
        "additionalProperties": False,
    }
    assert served(find).call_parameter == "call"


def test_parameters_may_be_described_in_the_other_style_and_in_their_type() -> None:
    def find(a: int, b: Annotated[int, Meta(description="By its type.")]) -> None:
        """Finds.

        :param a: First,
            and on.
        :param b: Not this.
        :returns: nothing
        """

    shown = definition(find)
    assert shown["description"] == "Finds."
    assert shown["inputSchema"]["properties"]["a"]["description"] == "First, and on."
    assert shown["inputSchema"]["properties"]["b"]["description"] == "By its type."


@pytest.mark.parametrize("kind", [Item, Point, Row, dict[str, int], Literal["a"], Colour, list[Item], int | None, str])
def test_every_result_has_an_object_schema_that_the_gateway_can_use(kind: Any) -> None:
    def give() -> None:
        """Gives."""

    give.__annotations__["return"] = kind
    schema = definition(give)["outputSchema"]
    assert schema["type"] == "object"
    Draft202012Validator.check_schema(schema)
    assert isinstance(compile_schema(json.dumps(schema).encode()), Schema)


def test_a_result_that_is_no_object_is_shown_as_the_one_member_of_one() -> None:
    def give() -> list[int]:
        """Gives."""
        return []

    assert definition(give)["outputSchema"]["required"] == ["result"]
    assert served(give).is_wrapped


def test_a_tool_without_a_result_has_no_output_schema() -> None:
    def give() -> None:
        """Gives nothing."""

    assert "outputSchema" not in definition(give)
    assert served(give).result is None


@pytest.mark.requirement("S2/MCP-004")
def test_annotations_say_what_the_contract_says() -> None:
    def give() -> None:
        """Gives."""

    marked = tool(category="mutation", idempotent=False, effects=["network"])(give)
    found = serve(getattr(marked, MARK))
    assert isinstance(found, ServedTool)
    shown = json.loads(found.definition)
    assert shown["annotations"] == {"readOnlyHint": False, "idempotentHint": False, "openWorldHint": True}
    assert shown["_meta"]["dev.pactgate/contract"]["idempotent"] is False


@pytest.mark.requirement("S2/MCP-005")
def test_a_default_that_can_change_is_a_new_one_for_each_call() -> None:
    def take(tags: list[str] = [], item: Item = Item("a")) -> None:  # noqa: B006, B008
        """Takes."""

    first, second = (served(take).arguments.decode(b"{}") for _ in range(2))
    first.tags.append("x")
    first.item.parts.append(first.item)
    assert (second.tags, second.item) == ([], Item("a"))
    assert take.__defaults__ == ([], Item("a"))


def test_everything_wrong_with_a_signature_is_said_at_once() -> None:
    def wrong(a, *rest: int, b: int = 1, **more: int):  # type: ignore[no-untyped-def]
        """Wrong."""

    said = refused(wrong)
    for word in ("'a'", "'rest'", "'more'", "returns"):
        assert word in said


def test_types_that_are_no_json_and_defaults_that_do_not_fit_are_refused() -> None:
    def wrong(a: Foreign, b: int = "x") -> None:  # type: ignore[assignment]
        """Wrong."""

    said = refused(wrong)
    assert "'a' has a type that can't be written as JSON" in said
    assert "'b' has a default that does not fit" in said

    def worse() -> Foreign:
        """Worse."""
        return Foreign()

    assert "What it returns has a type" in refused(worse)


def test_names_nobody_knows_generators_and_two_calls_are_refused() -> None:
    def unknown() -> Nowhere:  # type: ignore[name-defined]  # noqa: F821
        """Unknown."""

    def generate() -> int:  # type: ignore[misc]
        """Generates."""
        yield 1

    def two(a: Call, b: Call) -> None:
        """Two."""

    assert "Nowhere" in refused(unknown)
    assert "generator" in refused(generate)
    assert "one parameter" in refused(two)


def test_arguments_are_read_strictly() -> None:
    def take(a: int) -> None:
        """Takes."""

    reader = served(take).arguments
    for text in (b'{"a":"1"}', b"{}", b'{"a":1,"b":2}', b"[]"):
        with pytest.raises(msgspec.ValidationError):
            reader.decode(text)
