"""What the gateway lists is recognised by the end of its names, and read to the last page."""

from __future__ import annotations

from pathlib import Path

import pytest

from pactgate.conformance.gateway.fleet import Fleet
from pactgate.conformance.gateway.recording import ClientRoute
from pactgate.conformance.gateway.script import Scenario, ScriptedTool
from pactgate.conformance.gateway.under_test import GatewayUnderTest, UnreachableError, is_named


class Paged(Scenario):
    """More than one page."""

    servers = ("pg",)
    tools = tuple(ScriptedTool(f"gwp{number}_@") for number in range(7))


@pytest.mark.parametrize("shown", ["gwp1_lh", "legacyhttp__gwp1_lh", "legacyhttp-gwp1-lh", "legacyhttp.gwp1_lh"])
def test_a_name_is_recognised_with_any_prefix_and_punctuation(shown: str) -> None:
    assert is_named(shown, "gwp1_lh")
    assert not is_named(shown, "gwp1_mh")


async def test_all_pages_are_read_and_an_era_that_is_refused_is_known_with_the_reason(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, [Paged], ("pg", "lh"))
    await fleet.start()
    gateway = GatewayUnderTest(fleet.urls, is_direct=True)
    of_one_era = GatewayUnderTest({"pg": fleet.urls["pg"]}, era="modern")
    only_legacy = GatewayUnderTest({"lh": fleet.urls["lh"]})
    try:
        await gateway.wait(10, lambda text: None)
        assert gateway.find(ClientRoute("modern", "pg"), "tools/list", "gwp6_@") == "gwp6_pg"
        assert gateway.find(ClientRoute("modern", "lh"), "tools/list", "gwpready_@") is None
        assert gateway.implementation() == "gwp-pg 1"
        await only_legacy.survey()
        await of_one_era.wait(10, lambda text: None)
        assert {era for era, _ in of_one_era.listings} == {"modern"}
        assert list(only_legacy.refusals) == ["modern"]
    finally:
        await gateway.close()
        await only_legacy.close()
        await of_one_era.close()
        await fleet.close()


async def test_a_gateway_that_is_not_there_is_reported_in_time() -> None:
    gateway = GatewayUnderTest({"lh": "http://127.0.0.1:1/mcp"})
    with pytest.raises(UnreachableError):
        await gateway.wait(0.1, lambda text: None)
    await gateway.close()
