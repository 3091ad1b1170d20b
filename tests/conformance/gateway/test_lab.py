"""A check gets the routes that there are, or the reason why there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from pactgate.conformance.gateway.fleet import Fleet
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import ClientRoute
from pactgate.conformance.gateway.script import Scenario, ScriptedTool
from pactgate.conformance.gateway.under_test import GatewayUnderTest


class Here(Scenario):
    """Servers that are there, and one that is not."""

    servers = ("lh", "dh", "ls")
    tools = (ScriptedTool("gwphere_@"),)


class Elsewhere(Scenario):
    """A server that is not there."""

    servers = ("ls",)


async def test_routes_are_what_is_listed_and_the_rest_has_a_reason(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, [Here], ("lh", "dh"))
    await fleet.start()
    gateway = GatewayUnderTest(fleet.urls, is_direct=True)
    lab = Lab(gateway, fleet.logs, {"ls": "it has HTTP servers only"})
    try:
        await gateway.wait(10, lambda text: None)
        assert lab.routes(Here()) == [
            ClientRoute("legacy", "lh"),
            ClientRoute("legacy", "dh"),
            ClientRoute("modern", "dh"),
        ]
        assert len(lab.addresses(Here())) == 3
        assert not lab.is_aggregate
        with pytest.raises(NotApplicableError, match="HTTP servers only"):
            lab.routes(Elsewhere())
        route = ClientRoute("modern", "dh")
        client = await lab.new_client(route)
        await client.call(lab.record_on(route), lab.exposed(route, "gwphere_@"))
        assert {frame.route for frame in lab.frames} == {route}
        assert await lab.until_server("gwphere_dh", lambda frame: frame.is_sent)
        await lab.record_definition(route, Here.tools[0])
        assert [frame.data for frame in lab.frames[-2:]] == [Here.tools[0].definition("dh")] * 2
    finally:
        await lab.close()
        await gateway.close()
        await fleet.close()


async def test_listeners_share_a_client_by_address_and_are_waited_for_within_a_bound(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, [Here], ("lh", "dh"))
    await fleet.start()
    gateway = GatewayUnderTest(fleet.urls, is_direct=True)
    lab = Lab(gateway, fleet.logs, {})
    try:
        await gateway.wait(10, lambda text: None)
        async with lab.listeners(Here()) as clients:
            assert [str(route) for route in clients] == [
                "legacy client to lh",
                "legacy client to dh",
                "modern client to dh",
            ]
            assert len({client.name for client in clients.values()}) == 3
            assert await lab.until_client("listen", lambda frame: frame.is_sent)
            assert not await lab.until_client("listen", lambda frame: frame.data == "never", 0.1)
    finally:
        await lab.close()
        await gateway.close()
        await fleet.close()
