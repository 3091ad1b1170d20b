"""Whose address stands in log, audit log and history. The gateway is a process of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.program import Served, scripted, write_config
from tests.support.eventually import eventually_blocking
from tests.support.facing import modern
from tests.support.raw_http import RawClient

OPS = "5e1c7b2aa90d4f3386e17f0b9dd4c28e60f19a77"
SAYS = {"x_forwarded_for": "203.0.113.7, 198.51.100.9"}


@pytest.mark.parametrize(
    ("proxies", "address"),
    [
        pytest.param(["127.0.0.0/8"], "198.51.100.9", id="a trusted proxy says it"),
        pytest.param([], "127.0.0.1", id="nobody else is believed"),
    ],
)
async def test_the_address_of_a_client_is_what_its_connection_or_a_trusted_proxy_says(
    proxies: list[str], address: str, tmp_path: Path
) -> None:
    write_config(
        tmp_path,
        {"db": scripted()},
        audit={"file": "audit.jsonl"},
        auth={"tokens": {"ops": {"token": OPS, "roles": ["admin"]}}},
        listen={"trustedProxies": proxies},
        log={"format": "json"},
    )
    with Served(tmp_path) as served:
        served.wait_for("ServerConnected|ok    db")
        async with RawClient(int(served.url.rpartition(":")[2])) as client:
            good = {"authorization": f"Bearer {OPS}", **SAYS}
            assert (await client.ask(modern("tools/call", name="db__echo", **good))).status == 200
            assert (
                await client.ask(modern("tools/call", name="db__echo", authorization="Bearer x", **SAYS))
            ).status == 401
        (call,) = json.loads(served.run("explain", "--json", PACTGATE_TOKEN=OPS).stdout)
        eventually_blocking(lambda: len(records(tmp_path)) == 2)
    assert call["peer"] == address
    assert [record["peer"] for record in records(tmp_path)] == [address] * 2
    assert [line["peer"] for line in served.log_lines() if line["event"] == "RequestRefused"] == [address]


def records(folder: Path) -> list[dict[str, object]]:
    lines = map(json.loads, (folder / "audit.jsonl").read_text().splitlines())
    return [line for line in lines if line["kind"] in ("call", "refused")]
