"""The servers of a run start, and end with it."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlsplit

from pactgate.conformance.gateway.fleet import Fleet, script_of
from pactgate.conformance.gateway.script import Scenario, ScriptedTool


class OnlyModern(Scenario):
    """A tool for one server."""

    servers = ("mh",)
    tools = (ScriptedTool("x_@"), ScriptedTool("y_@", servers=("ls",)))


def test_a_server_offers_what_is_brought_for_it_and_the_tool_by_which_it_is_seen() -> None:
    offered = {tag: [tool.name for tool in script_of(tag, [OnlyModern], "").tools] for tag in ("lh", "mh", "ls")}
    assert offered == {"lh": ["gwpready_@"], "mh": ["gwpready_@", "x_@"], "ls": ["gwpready_@", "y_@"]}


async def test_servers_listen_until_the_fleet_is_closed(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, [], ("lh", "ls"))
    await fleet.start()
    assert fleet.entries()["legacystdio"]["args"][-1] == "stdio"
    assert list(fleet.entries()) == ["legacyhttp", "legacystdio"]
    assert not refuses(fleet.urls["lh"])
    await fleet.close()
    assert refuses(fleet.urls["lh"])


def refuses(url: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", urlsplit(url).port or 0)) != 0
