"""Facts about the gateway leave out what does not exist for a client; without permissions and views they stay as they are."""

from __future__ import annotations

from typing import Any

from pactgate.catalog.shown_facts import shown_facts
from pactgate.catalog.surfaces import Surfaces
from pactgate.core.principal import Principal
from pactgate.policy.permissions.rules import Permissions
from tests.catalog.test_surfaces import state
from tests.support.permitted import allow, config_with

FACTS: dict[str, Any] = {
    "uptimeMs": 5,
    "servers": [
        {"serverId": "a", "toolCount": 2, "promptCount": 1, "resourceCount": 1, "leftOut": ["a.z: no schema"]},
        {"serverId": "b", "toolCount": 1, "promptCount": 0, "resourceCount": 0, "leftOut": []},
    ],
    "tools": [{"fullName": name} for name in ("a.x", "a.y", "b.x")],
    "limits": {"maxArraySize": 9, "toolArrayLimits": {"a.x": 1, "a.y": 2, "?.x": 3, "b.*": 4}},
}


def test_what_does_not_exist_for_a_client_is_not_listed_counted_or_named() -> None:
    surfaces = Surfaces(state(a=("x", "y"), b=("x",)), Permissions(config_with(allow("a.x"))))
    assert shown_facts(FACTS, surfaces.of_principal(Principal("some"))) == {
        "uptimeMs": 5,
        "servers": [{"serverId": "a", "toolCount": 1, "promptCount": 0, "resourceCount": 0, "leftOut": []}],
        "tools": [{"fullName": "a.x"}],
        "limits": {"maxArraySize": 9, "toolArrayLimits": {"a.x": 1, "?.x": 3}},
    }


def test_without_permissions_facts_are_for_everybody() -> None:
    assert shown_facts(FACTS, Surfaces(state(a=("x", "y")), None).unfiltered) == FACTS
