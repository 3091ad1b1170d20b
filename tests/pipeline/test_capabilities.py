"""What the gateway promises is what the servers behind it can do."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.pipeline.capabilities import alone, has_extensions, merged

CHANGES = {"listChanged": True}


@pytest.mark.parametrize(
    ("offered", "more"),
    [
        ([], {}),
        ([{"tools": {}}, {"completions": {}}], {"completions": {}}),
        (
            [{"logging": {}}, {"resources": {"subscribe": True}}],
            {"logging": {}, "resources": {**CHANGES, "subscribe": True}},
        ),
        ([{"resources": {"subscribe": "yes"}}, {"resources": []}], {}),
    ],
)
def test_all_servers_together_can_do_what_one_of_them_can(offered: list[dict[str, Any]], more: dict[str, Any]) -> None:
    assert merged(offered) == {"tools": CHANGES, "prompts": CHANGES, "resources": CHANGES, **more}


def test_a_server_alone_offers_what_it_offers_and_says_when_its_lists_change() -> None:
    offered: dict[str, Any] = {"tools": {}, "resources": {"subscribe": True}, "logging": {}, "unheard-of": {}}
    assert alone(offered) == {"tools": CHANGES, "resources": {**CHANGES, "subscribe": True}, "logging": {}}
    assert alone({}) == {}
    assert alone(None) == {"tools": CHANGES}


def test_extensions_are_offered_to_callers_of_the_same_era_only() -> None:
    offered: dict[str, Any] = {"tools": {}, "extensions": {"com.example/x": {}}, "tasks": {"list": {}}}
    own: dict[str, Any] = {"extensions": {"com.example/x": {}}, "tasks": {"list": {}}}
    assert alone(offered, is_same_era=True) == {"tools": CHANGES, **own}
    assert alone(offered) == {"tools": CHANGES}
    assert has_extensions(offered)
    assert not has_extensions({"tools": {}, "extensions": {}})
