"""Names: full, exposed, bare; nothing collides, nothing depends on order."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.catalog.catalog import name_entries
from pactgate.catalog.discovery import DiscoveredLists, DiscoveredTool
from pactgate.catalog.index import TOOL_KIND, NameIndex, ToolIndex, exposed_name, server_of
from pactgate.core.failures import GatewayFailure, Kind

STRICT = re.compile(r"[A-Za-z0-9_-]{1,64}")


def found(*names: str) -> tuple[DiscoveredTool, ...]:
    return tuple(
        DiscoveredTool(name, json.dumps({"name": name, "inputSchema": {"type": "object"}, "x": None}).encode(), name)
        for name in names
    )


def index(naming: str = "double_underscore", **servers: tuple[DiscoveredTool, ...]) -> ToolIndex:
    ids = {id_: id_.replace("_", "-") for id_ in servers}
    named = {ids[id_]: name_entries(ids[id_], DiscoveredLists(tools), naming).tools for id_, tools in servers.items()}
    return NameIndex(named, TOOL_KIND)


def kind_of(names: ToolIndex, name: str, scope: str | None = None) -> Kind:
    with pytest.raises(GatewayFailure) as caught:
        names.resolve(name, scope)
    return caught.value.kind


@pytest.mark.requirement("S0/ECO-003")
def test_two_servers_may_offer_a_tool_of_the_same_name() -> None:
    names = index(server_a=found("search"), server_b=found("search"))
    assert names.resolve("server-a.search").server == "server-a"
    assert names.resolve("server-b.search").server == "server-b"
    assert [tool.exposed_name for tool in names.entries()] == ["server-a__search", "server-b__search"]


@pytest.mark.requirement("S0/ECO-003")
@pytest.mark.requirement("S4/R2")
def test_a_bare_name_of_several_servers_is_ambiguous_and_the_candidates_are_named() -> None:
    names = index(server_a=found("search"), server_b=found("search"))
    with pytest.raises(GatewayFailure) as caught:
        names.resolve("search")
    assert caught.value.kind is Kind.AMBIGUOUS_TOOL
    assert caught.value.details["candidates"] == ["server-a.search", "server-b.search"]


@pytest.mark.requirement("S0/ECO-003")
def test_the_ambiguity_is_gone_when_only_one_server_is_left() -> None:
    assert index(server_a=found("search"), server_b=()).resolve("search").server == "server-a"


@pytest.mark.parametrize("spelling", ["files.read", "files__read", "read"])
@pytest.mark.parametrize("naming", ["double_underscore", "dot"])
def test_every_spelling_resolves_whatever_is_exposed(spelling: str, naming: str) -> None:
    assert index(naming, files=found("read")).resolve(spelling).full_name == "files.read"


@pytest.mark.requirement("S0/ECO-003")
@pytest.mark.parametrize("own", ["admin.tools.list", "a__b", "a.b__c"])
def test_a_tool_whose_own_name_has_separators_is_reachable_bare_and_qualified(own: str) -> None:
    names = index(files=found(own))
    exposed = names.entries()[0].exposed_name
    for spelling in (own, f"files.{own}", f"files__{own}", exposed):
        assert names.resolve(spelling).name == own
    assert STRICT.fullmatch(exposed)


def test_a_full_name_wins_over_another_tools_bare_name() -> None:
    names = index(b=found("c"), a=found("b.c"))
    assert names.resolve("b.c").server == "b"


def test_names_are_case_sensitive() -> None:
    assert kind_of(index(files=found("read")), "files.Read") is Kind.UNKNOWN_TOOL


def test_on_one_server_alone_only_its_own_names_count() -> None:
    names = index(files=found("read"), other=found("write"))
    assert names.resolve("read", "files").full_name == "files.read"
    assert kind_of(names, "files.read", "files") is Kind.UNKNOWN_TOOL
    assert kind_of(names, "write", "files") is Kind.UNKNOWN_TOOL
    assert kind_of(names, "read", "nobody") is Kind.UNKNOWN_TOOL


@given(
    server=st.from_regex(r"[a-z][a-z0-9-]{0,49}", fullmatch=True),
    tool=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=256),
)
def test_every_exposed_name_suits_strict_clients_and_depends_on_the_two_names_only(server: str, tool: str) -> None:
    name = exposed_name(server, tool, "__")
    assert STRICT.fullmatch(name)
    assert name == exposed_name(server, tool, "__")
    assert name.startswith(server[:50])


def test_long_names_that_differ_only_at_the_end_stay_apart() -> None:
    names = {exposed_name("files", "x" * 100 + str(number), "__") for number in range(50)}
    assert len(names) == 50


def test_names_that_fold_to_the_same_letters_stay_apart() -> None:
    assert exposed_name("files", "a.b", "__") != exposed_name("files", "a_b", "__")


@pytest.mark.parametrize(
    ("name", "server"), [("files.x", "files"), ("files__x", "files"), ("nobody.x", None), ("x", None), (".x", None)]
)
def test_a_qualified_name_points_at_its_server_even_before_it_is_known(name: str, server: str | None) -> None:
    assert server_of(name, {"files": None}) == server


@pytest.mark.parametrize("claimed", ["files.read", "files__read", "files___read", "files.a.b"])
def test_a_name_with_the_prefix_of_a_server_never_reaches_another_server(claimed: str) -> None:
    evil = name_entries("evil", DiscoveredLists(found(claimed)), "double_underscore").tools
    names = NameIndex({"evil": evil, "files": ()}, TOOL_KIND)
    assert kind_of(names, claimed) is Kind.UNKNOWN_TOOL
    assert names.server_for(claimed) == "files"
    assert names.resolve(f"evil.{claimed}").server == "evil"
    assert names.resolve(evil[0].exposed_name).server == "evil"
    assert names.resolve(claimed, "evil").server == "evil"


def test_a_server_may_begin_its_own_names_with_its_own_id() -> None:
    assert index(files=found("files.read")).resolve("files.read").full_name == "files.files.read"


def test_a_bare_name_counts_for_every_server_that_was_last_known_to_offer_it() -> None:
    evil = name_entries("evil", DiscoveredLists(found("read", "own")), "double_underscore").tools
    names = NameIndex({"evil": evil, "files": ()}, TOOL_KIND, known={"files": ["read", "write"], "evil": ["read"]})
    with pytest.raises(GatewayFailure) as caught:
        names.resolve("read")
    assert caught.value.kind is Kind.AMBIGUOUS_TOOL
    assert caught.value.details["candidates"] == ["evil.read", "files.read"]
    assert names.resolve("own").server == "evil"
    assert kind_of(names, "write") is Kind.UNKNOWN_TOOL
    assert names.server_for("write") == "files"
