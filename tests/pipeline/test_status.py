"""The status resource says what is there, what is missing, and nothing else."""

from __future__ import annotations

import json

from pactgate.config.server_settings import ServerConfig
from pactgate.pipeline.status import DEFINITION, URI, Status
from tests.pipeline.conftest import open_gateway
from tests.support.callers import caller
from tests.support.servers import scripted


async def test_missing_servers_are_named_with_their_reason_and_without_their_command() -> None:
    broken = ServerConfig(id="broken", command="no-such-program-anywhere", args=("--key", "hunter2"), max_retries=0)
    async with open_gateway(broken, scripted()) as inside:
        await inside.ask("tools/list")
        text = Status(inside.gateway.connections, inside.gateway.facts.limits).read(URI, caller())
    assert text is not None
    facts = json.loads(json.loads(text)["contents"][0]["text"])
    assert "broken" in facts["missing"]
    assert [server["serverId"] for server in facts["servers"]] == ["broken", "files"]
    assert b"hunter2" not in text


async def test_no_other_uri_is_ours() -> None:
    async with open_gateway() as inside:
        assert Status(inside.gateway.connections, dict).read("pactgate://else", caller()) is None
    assert json.loads(DEFINITION)["uri"] == URI
