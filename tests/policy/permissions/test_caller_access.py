"""A URI need not be listed to be read; one that a server may read in another way than the gateway is nobody's."""

from __future__ import annotations

import pytest

from pactgate.catalog.views import View
from pactgate.config.sections.permissions import PermissionRule
from pactgate.config.sections.views import ViewSection
from pactgate.core.principal import Principal
from pactgate.policy.permissions.caller_access import CallerAccess
from pactgate.policy.permissions.rules import Denied, Grant, Permissions
from pactgate.policy.permissions.selection import Subject
from tests.support.permitted import allow, config_with, deny


def access(*rules: PermissionRule, listed: tuple[str, ...] = (), view: View | None = None) -> CallerAccess:
    permissions = Permissions(config_with(*rules))
    key = permissions.key_of(Principal("some"))
    return CallerAccess(permissions, key, tools={}, prompts={}, listed=listed, view=view)


@pytest.mark.parametrize("path", ["../etc", "a/../../etc", "%2e%2e/etc", "a%2Fb", "a\\b", "./a", "..", "a/.."])
def test_a_path_with_dot_segments_is_nobodys_unless_everything_is_allowed(path: str) -> None:
    uri = f"crm+file:///open/{path}"
    assert isinstance(access(allow("crm+file:///open/*")).of_uri("crm", uri), Denied)
    assert isinstance(access(allow("crm+file:///open/*"), listed=(uri,)).of_uri("crm", uri), Grant)
    assert isinstance(access(allow("server:crm")).of_uri("crm", uri), Grant)
    assert isinstance(access(allow("server:crm"), deny("crm+file:///secret/*")).of_uri("crm", uri), Denied)


def test_in_a_view_no_server_is_whole_also_where_all_of_it_is_allowed() -> None:
    """Or methods outside the protocol, and a path with dot segments, would reach what the view does not show."""
    seen = access(allow("server:crm"), view=View("v", ViewSection(tools=(), resources=("crm+file:///open/*",))))
    assert access(allow("server:crm")).has_whole("crm")
    assert not seen.has_whole("crm")
    assert isinstance(seen.of_uri("crm", "crm+file:///open/a"), Grant)
    assert isinstance(seen.of_uri("crm", "crm+file:///open/../closed"), Denied)
    assert isinstance(seen.of_uri("crm", "crm+file:///closed"), Denied)


def test_an_unlisted_uri_that_a_pattern_allows_may_be_read() -> None:
    assert isinstance(access(allow("crm+file:///open/*")).of_uri("crm", "crm+file:///open/a..b"), Grant)
    assert isinstance(access(allow("crm+file:///open/*")).of_uri("crm", "crm+file:///closed"), Denied)


def test_a_condition_on_arguments_is_false_for_a_read_which_has_none() -> None:
    rule = allow("server:crm", when="arguments.x == 1")
    assert isinstance(access(rule).of_uri("crm", "crm+a:b"), Denied)


def test_the_rule_that_denies_is_named() -> None:
    denied = access(allow("crm.*"), deny("crm.drop", say="Never.")).why_denied(Subject("crm", "crm.drop"))
    assert denied is not None
    assert (denied.applied.number, denied.say) == (2, "Never.")
    assert access(allow("crm.*")).why_denied(Subject("crm", "crm.get")) is None


def test_the_number_of_remembered_uris_is_bounded() -> None:
    made = access(allow("crm+x:*"))
    for number in range(3000):
        assert isinstance(made.of_uri("crm", f"crm+x:{number}"), Grant)
    assert len(made._uris) <= 1024
