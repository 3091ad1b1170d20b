"""One moment of everything callable, and the lists made of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pactgate.catalog.catalog import MISSING_KEY, Catalog, name_entries
from pactgate.catalog.discovery import DiscoveredEntry, DiscoveredLists, DiscoveredTool
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN

INFO = b'{"name":"pactgate","version":"0"}'


def found(member: str, key: str) -> DiscoveredEntry:
    return DiscoveredEntry(key, json.dumps({member: key, "extra": None}).encode(), "0")


FILES = DiscoveredLists(
    tools=(DiscoveredTool("read", b'{"name":"read","inputSchema":{"type":"object"},"x":null}', "0"),),
    prompts=(found("name", "ask"),),
    resources=(found("uri", "file:///a"),),
    templates=(found("uriTemplate", "file:///{path}"),),
)


def catalog(**more: Any) -> Catalog:
    return Catalog({"files": name_entries("files", FILES, "double_underscore")}, server_info=INFO, **more)


@pytest.mark.parametrize(
    ("method", "member", "merged", "own"),
    [
        ("tools/list", "tools", {"name": "files__read", "inputSchema": {"type": "object"}, "x": None}, None),
        ("prompts/list", "prompts", {"name": "files__ask", "extra": None}, {"name": "ask", "extra": None}),
        ("resources/list", "resources", {"uri": "files+file:///a", "extra": None}, {"uri": "file:///a", "extra": None}),
        (
            "resources/templates/list",
            "resourceTemplates",
            {"uriTemplate": "files+file:///{path}", "extra": None},
            {"uriTemplate": "file:///{path}", "extra": None},
        ),
    ],
)
def test_lists_show_qualified_names_merged_and_own_definitions_alone(
    method: str, member: str, merged: Any, own: Any
) -> None:
    lists = catalog()
    assert json.loads(lists.listing(method, None, LATEST_LEGACY)) == {member: [merged]}
    alone = own or {"name": "read", "inputSchema": {"type": "object"}, "x": None}
    assert json.loads(lists.listing(method, "files", LATEST_LEGACY)) == {member: [alone]}
    assert json.loads(lists.listing(method, "nobody", LATEST_LEGACY)) == {member: []}


def test_a_modern_list_is_complete_and_says_how_long_it_may_be_kept() -> None:
    listed = json.loads(catalog().listing("tools/list", None, LATEST_MODERN))
    assert listed["resultType"] == "complete"
    assert isinstance(listed["ttlMs"], int)
    assert listed["cacheScope"] in ("public", "private")
    assert listed["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "pactgate"


def test_a_list_is_encoded_once() -> None:
    lists = catalog()
    assert lists.listing("tools/list", None, LATEST_LEGACY) is lists.listing("tools/list", None, LATEST_LEGACY)


def test_what_is_missing_is_said_in_the_lists_meta_where_it_concerns_the_caller() -> None:
    lists = catalog(missing={"crm": "refused"})
    for version in (LATEST_LEGACY, LATEST_MODERN):
        assert json.loads(lists.listing("tools/list", None, version))["_meta"][MISSING_KEY] == {"crm": "refused"}
        assert json.loads(lists.listing("tools/list", "crm", version))["_meta"][MISSING_KEY] == {"crm": "refused"}
        assert MISSING_KEY not in json.loads(lists.listing("tools/list", "files", version)).get("_meta", {})


def test_resources_of_the_gateway_itself_stand_first_in_the_merged_list_only() -> None:
    lists = catalog(own_resources=(b'{"uri":"pactgate://status"}',))
    uris = [item["uri"] for item in json.loads(lists.listing("resources/list", None, LATEST_LEGACY))["resources"]]
    assert uris == ["pactgate://status", "files+file:///a"]
    alone = json.loads(lists.listing("resources/list", "files", LATEST_LEGACY))["resources"]
    assert [item["uri"] for item in alone] == ["file:///a"]


def large(name: str, size: int) -> DiscoveredLists:
    definition = json.dumps({"name": name, "inputSchema": {"type": "object"}, "description": "d" * size}).encode()
    return DiscoveredLists(tools=(DiscoveredTool(name, definition, name),))


def test_the_list_of_all_servers_leaves_the_largest_out_and_says_so() -> None:
    sizes = {"small": 1000, "large": 4 * 2**20, "larger": 5 * 2**20, "other": 1000}
    servers = {id_: name_entries(id_, large("read", size), "double_underscore") for id_, size in sizes.items()}
    lists = Catalog(servers, server_info=INFO)
    merged = json.loads(lists.listing("tools/list", None, LATEST_LEGACY))
    assert [tool["name"] for tool in merged["tools"]] == ["small__read", "large__read", "other__read"]
    assert set(merged["_meta"][MISSING_KEY]) == {"larger"}
    assert "missing in tools/list" in merged["_meta"][MISSING_KEY]["larger"]
    assert [tool.server for tool in lists.listed_tools()] == ["small", "large", "other"]
    assert json.loads(lists.listing("tools/list", "larger", LATEST_LEGACY))["tools"][0]["name"] == "read"
    assert lists.tools.resolve("larger.read").server == "larger"
    assert MISSING_KEY not in json.loads(lists.listing("prompts/list", None, LATEST_LEGACY)).get("_meta", {})


def test_of_equally_large_servers_the_last_ones_are_left_out() -> None:
    ids = ("a", "b", "c", "d")
    servers = {id_: name_entries(id_, large("read", 3 * 2**20), "double_underscore") for id_ in ids}
    assert Catalog(servers, server_info=INFO).oversized["tools/list"] == ("d", "c")
