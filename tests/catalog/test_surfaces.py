"""One catalog per class of callers; equal rights share one; what changed is made again, nothing else."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pactgate.catalog.catalog import Catalog, ServerCatalog
from pactgate.catalog.surfaces import CatalogState, Surfaces, ViewSettings
from pactgate.catalog.views import View
from pactgate.config.model import Config
from pactgate.config.sections.permissions import PermissionRule
from pactgate.config.sections.views import ViewSection
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.principal import Principal
from pactgate.core.values import Tool
from pactgate.policy.permissions.rules import Grant, Permissions
from pactgate.policy.permissions.selection import Subject
from tests.policy.permissions.test_rules import CALLERS, PRINCIPALS, RULES, SELECTORS, SERVERS, TOOLS
from tests.support.callers import caller
from tests.support.permitted import allow, config_with, some


def tool(server: str, name: str) -> Tool:
    return Tool(server, name, f"{server}.{name}", f"{server}__{name}", b"{}", b"{}", "")


def state(**servers: tuple[str, ...]) -> CatalogState:
    by_server = {id_: ServerCatalog(tools=tuple(tool(id_, name) for name in names)) for id_, names in servers.items()}
    own = ServerCatalog(tools=(tool("pactgate", "explain"),))
    return CatalogState(
        by_server=by_server,
        built_in={"pactgate": own},
        last=by_server,
        known={},
        reserved=frozenset((*servers, "pactgate", "removed")),
        missing={"b": "away"},
        instructions={id_: f"about {id_}" for id_ in servers},
        server_info=b"{}",
        own_resources=(),
    )


def names(surfaces: Surfaces, who: Any) -> list[str]:
    return [one.full_name for one in surfaces.of(who).tools.entries()]


def test_without_permissions_there_are_two_catalogs() -> None:
    surfaces = Surfaces(state(a=("x",)), None)
    assert surfaces.of(caller()) is surfaces.of(caller(key="other")) is surfaces.unfiltered
    assert names(surfaces, caller(roles=frozenset({"admin"}))) == ["a.x", "pactgate.explain"]


def test_a_class_sees_what_is_allowed_and_an_administrator_of_it_the_own_server_too() -> None:
    surfaces = Surfaces(state(a=("x", "y"), b=("x",)), Permissions(config_with(allow("a.x"))))
    assert names(surfaces, some()) == ["a.x"]
    assert names(surfaces, some(roles=frozenset({"admin"}))) == ["a.x", "pactgate.explain"]
    assert names(surfaces, caller()) == []
    catalog = surfaces.of(some())
    assert (catalog.servers, catalog.missing, catalog.instructions) == (("a",), {}, {"a": "about a"})
    assert catalog.reserved == {"a", "removed"}


def test_clients_of_one_class_share_a_catalog() -> None:
    surfaces = Surfaces(state(a=("x",)), Permissions(config_with(allow("a.x", to="rest"))))
    assert surfaces.of(caller(key="one")) is surfaces.of(caller(key="other"))
    assert surfaces.held == 1


def test_a_client_that_comes_with_other_rights_is_looked_up_again() -> None:
    surfaces = Surfaces(state(a=("x",)), Permissions(config_with(allow("a.x", to="*", when="'g' in caller.roles"))))
    assert names(surfaces, caller()) == []
    assert names(surfaces, caller(roles=frozenset({"g"}))) == ["a.x"]
    assert names(surfaces, caller()) == []


def test_a_change_matches_the_rules_again_only_with_the_server_that_changed() -> None:
    permissions = Permissions(config_with(allow("a.x", "b.x")))
    first = state(a=("x",), b=("x",))
    before = Surfaces(first, permissions)
    before.of(some())
    changed = state(a=("x", "y"), b=())
    changed.by_server["b"] = first.by_server["b"]
    after = Surfaces(changed, permissions, None, before)
    assert after._entries.keys() == {"b"}
    assert names(after, some()) == ["a.x", "b.x"]
    assert [one.key for one, _ in after.callers_of(before)] == ["some"]


VIEWS = st.none() | st.builds(
    lambda chosen, excluded: ViewSection(tools=tuple(chosen), exclude=tuple(excluded)),
    st.lists(st.sampled_from(SELECTORS), min_size=1, max_size=2),
    st.lists(st.sampled_from(SELECTORS), max_size=1),
)


@given(RULES, PRINCIPALS, st.lists(TOOLS, max_size=6, unique_by=lambda one: one.full_name), VIEWS)
def test_what_a_class_lists_is_what_it_can_call_and_a_view_gives_no_right(
    rules: list[PermissionRule], who: Principal, tools: list[Tool], section: ViewSection | None
) -> None:
    config = Config(callers=CALLERS, permissions=tuple(rules))
    permissions = Permissions(config)
    of_server = {id_: ServerCatalog(tools=tuple(one for one in tools if one.server == id_)) for id_ in SERVERS}
    views = ViewSettings({} if section is None else {"v": View("v", section)}, {})
    surfaces = Surfaces(replace(state(crm=(), files=()), by_server=of_server, last=of_server), permissions, views)
    catalog = surfaces.of_principal(who, None if section is None else "v")
    listed = {one.full_name for one in catalog.listed_tools()}
    for one in tools:
        is_allowed = isinstance(permissions.decide(permissions.key_of(who), Subject.of(one)), Grant)
        is_shown = section is None or views.views["v"].has_tool(one)
        assert (one.full_name in listed) is (is_allowed and is_shown)
        for name in (one.full_name, one.exposed_name):
            assert can_call(catalog, name) is (one.full_name in listed)


def can_call(catalog: Catalog, name: str) -> bool:
    try:
        return catalog.grant_of(catalog.tools.resolve(name)) is not None
    except GatewayFailure as failure:
        if failure.kind is not Kind.UNKNOWN_TOOL:
            raise
        return False
