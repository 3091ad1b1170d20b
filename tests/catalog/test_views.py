"""What a view makes of a definition and of the bytes of a call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.catalog.views import BoundTool, View
from pactgate.config.sections.views import ViewSection
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import Tool
from pactgate.protocol.messages import encode_json

VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)


def tool(name: str = "pull", schema: Any = None, server: str = "github") -> Tool:
    definition = {"name": name, "title": "Pull", "inputSchema": {"type": "object"} if schema is None else schema}
    exposed = encode_json({**definition, "name": f"{server}__{name}"})
    return Tool(server, name, f"{server}.{name}", f"{server}__{name}", encode_json(definition), exposed, "d")


def shown(made: Tool) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(made.exposed_definition)
    return found


@given(
    st.dictionaries(st.text(max_size=3) | st.sampled_from(["owner", "Owner", "Q"]), VALUES, max_size=3),
    st.dictionaries(st.sampled_from(["owner", "q"]), VALUES, min_size=1),
)
def test_fixed_arguments_are_added_once_and_nothing_else_changes(given_: dict[str, Any], fixed: dict[str, Any]) -> None:
    view = View("v", ViewSection(tools=("*",), arguments={"github.pull": fixed}))
    _, bound = view.bind(tool())
    for text in (json.dumps(given_).encode(), json.dumps(given_, indent=2).encode()):
        if {name.casefold() for name in given_} & fixed.keys():
            with pytest.raises(GatewayFailure) as raised:
                bound.fill(text)
            assert raised.value.kind is Kind.INVALID_ARGUMENTS
        else:
            filled = json.loads(bound.fill(text), object_pairs_hook=list)
            assert sorted(map(repr, filled)) == sorted(
                map(repr, json.loads(json.dumps({**fixed, **given_}), object_pairs_hook=list))
            )


def test_a_pattern_fixes_an_argument_only_where_a_tool_has_it() -> None:
    view = View("v", ViewSection(tools=("*",), arguments={"github.*": {"owner": "acme"}, "github.pull": {"extra": 1}}))
    schema = {"properties": {"owner": {}, "repo": {}}, "required": ["owner"]}
    made, bound = view.bind(tool(schema=schema))
    assert shown(made)["inputSchema"] == {"properties": {"repo": {}}}
    assert bound.members == b'"owner":"acme","extra":1'
    other, plain = view.bind(tool("list"))
    assert plain == BoundTool(plain.tool) or plain.fixed == {}
    assert other.exposed_definition == tool("list").exposed_definition


@pytest.mark.parametrize(
    "schema", [True, [], {"properties": []}, {"required": "owner"}, {"properties": {"owner": True}, "required": [1]}]
)
def test_a_schema_of_any_shape_is_survived(schema: Any) -> None:
    view = View("v", ViewSection(tools=("*",), arguments={"github.pull": {"owner": "acme"}}))
    made, _ = view.bind(tool(schema=schema))
    assert "inputSchema" in shown(made)


def test_a_renamed_tool_keeps_its_own_name_for_the_call() -> None:
    view = View("v", ViewSection(tools=("*",), rename={"github.pull": "review"}, describe={"github.pull": "Review."}))
    made, bound = view.bind(tool())
    assert (made.exposed_name, shown(made)["name"], shown(made)["description"]) == ("review", "review", "Review.")
    assert "title" not in shown(made)
    assert bound.tool.exposed_name == "github__pull"


def test_what_is_excluded_is_left_out_whatever_chose_it() -> None:
    view = View("v", ViewSection(tools=("server:github",), exclude=("github.delete_*", "server:files")))
    assert view.has_tool(tool())
    assert not view.has_tool(tool("delete_all"))
    assert view.may_show("github")
    assert not view.may_show("files")


def test_the_order_is_that_of_the_selectors_then_of_names() -> None:
    view = View("v", ViewSection(tools=("*.b", "z.*", "*")))
    tools = [tool(name, server=server) for server in ("z", "a") for name in ("c", "b", "a")]
    assert [one.full_name for one in sorted(tools, key=view.rank)] == ["a.b", "z.b", "z.a", "z.c", "a.a", "a.c"]
