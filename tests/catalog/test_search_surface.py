"""What `find_tools` and `describe_tools` say, and that they say it of no other tools."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from pactgate.catalog.search_surface import DESCRIBE, FIND, SearchSurface, is_search_tool, search_tools
from pactgate.core.values import Tool, Traits
from pactgate.protocol.messages import encode_json

SCHEMA = {
    "type": "object",
    "properties": {"owner": {"type": "string"}, "page": {"type": "integer"}},
    "required": ["owner"],
}


def tool(server: str, name: str, category: str = "query") -> Tool:
    data = encode_json({"name": f"{server}__{name}", "description": f"Does {name}\nfor people.", "inputSchema": SCHEMA})
    return Tool(server, name, f"{server}.{name}", f"{server}__{name}", data, data, "", traits=Traits(category=category))


def ask(surface: SearchSurface, name: str, **arguments: Any) -> str:
    text: str = json.loads(surface.answer(name, json.dumps(arguments).encode()))["content"][0]["text"]
    return text


def test_a_found_tool_is_one_line_with_its_required_arguments() -> None:
    surface = SearchSurface([tool("git", "merge"), tool("git", "fetch")])
    assert ask(surface, FIND, query="merge").splitlines() == [
        "1 of 2 tools; refine the query, or ask describe_tools:",
        "git__merge(owner: string, ...) - Does merge for people.",
    ]


@pytest.mark.parametrize(
    ("ui", "is_found"),
    [
        ({"visibility": ["app"]}, False),
        ({"visibility": ["model", "app"]}, True),
        ({"visibility": []}, False),
        ({"visibility": "app"}, True),
        ({}, True),
        ("visibility", True),
    ],
)
def test_a_tool_that_only_an_app_calls_is_neither_found_nor_described(ui: Any, is_found: bool) -> None:
    made = tool("git", "merge")
    definition = {**json.loads(made.definition), "_meta": {"ui": ui}}
    surface = SearchSurface([replace(made, definition=encode_json(definition))])
    assert ("git__merge" in ask(surface, FIND, query="merge")) is is_found
    assert ("inputSchema" in ask(surface, DESCRIBE, names=["git.merge"])) is is_found


def test_limit_server_and_category_narrow_what_is_found() -> None:
    surface = SearchSurface(
        [tool(server, f"people{at}", kind) for server in ("a", "b") for at, kind in enumerate(("query", "mutation"))]
    )
    assert len(ask(surface, FIND, query="people").splitlines()) == 5
    assert len(ask(surface, FIND, query="people", limit=2).splitlines()) == 3
    assert "a__" not in ask(surface, FIND, query="people", server="b")
    assert "people1" not in ask(surface, FIND, query="people", category="query")


def test_nothing_found_says_where_to_look() -> None:
    assert ask(SearchSurface([tool("git", "merge")]), FIND, query="zebra") == (
        "None of 1 tools has these words. Try others. Servers: git."
    )


def test_descriptions_are_whole_and_unknown_names_are_said() -> None:
    surface = SearchSurface([tool("git", "merge")])
    first, second = ask(surface, DESCRIBE, names=["git.merge", "git.drop"]).splitlines()
    assert json.loads(first)["inputSchema"] == SCHEMA
    assert second == "There is no tool 'git.drop'."


def test_the_tools_of_the_surface_are_the_same_for_everybody_and_split_on_request() -> None:
    assert [one.name for one in search_tools(splits_calls=False)] == ["find_tools", "describe_tools", "call_tool"]
    assert [one.name for one in search_tools(splits_calls=True)][2:] == ["call_read_tool", "call_write_tool"]
    assert search_tools(splits_calls=False) is search_tools(splits_calls=False)
    assert all(is_search_tool(one) for one in search_tools(splits_calls=True))
    assert not is_search_tool(tool("git", "find_tools"))
