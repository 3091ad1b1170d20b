"""What an upstream says arrives unchanged, and so does what a caller sends, for either era on either side.

Compared are JSON values with every number as it was written. Only what a change of era requires may differ: `resultType`
and the `_meta` keys of the protocol and of the gateway itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.interop.processes import HERE, PYTHON, Fleet
from tests.interop.raw import RawCaller, exact
from tests.interop.servers import scripted
from tests.replicas.cluster import Cluster, needs_nginx
from tests.support.redis_server import RedisServer, needs_redis

SERVERS = ("legacy-stdio", "legacy-http", "modern-stdio", "modern-http")
OURS = ("io.modelcontextprotocol/", "dev.pactgate/")

ARGUMENTS = (
    '{"big":18446744073709551616,"negative":-9223372036854775809,"float":0.30000000000000004,"one":1.0,"exponent":1E+2,'
    '"minus":-0,"none":null,"empty":{},"list":[],"":"empty key","text":"caf\\u00e9 \\ud83d\\ude00 \\u0000 \\/ \u2028",'
    '"deep":{"a":{"b":{"c":{"d":{"e":[[null]]}}}}},"a/b~c":{"$ref":"#/x"}}'
)
UNKNOWN_MEMBER = '"x-unknown-member":{"kept":[1.10,null,18446744073709551616]}'
FOREIGN_META = (
    '"example.com/trace":{"n":18446744073709551616,"none":null},'
    '"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"'
)


class Way(NamedTuple):
    """One caller on one path to one upstream."""

    caller: RawCaller
    server: str
    prefix: str


REPLICAS = pytest.param("replicas", marks=[pytest.mark.interop, needs_redis, needs_nginx])


@pytest.fixture(scope="module", params=["alone", REPLICAS])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One gateway, or three behind nginx, where requests land on one after the other."""
    folder = tmp_path_factory.mktemp("lossless")
    with Fleet(folder) as fleet:
        for server in SERVERS:
            era, transport = server.split("-")
            command: list[str | Path] = [PYTHON, HERE / "servers" / "scripted.py", server, era, "strange", transport]
            fleet.add(server, command, "/mcp" if transport == "http" else None)
        if request.param == "alone":
            yield fleet.start_gateway("greet")[1]
            return
        redis = RedisServer(folder).start()
        try:
            with Cluster(folder, fleet.started(), store=redis.url) as cluster:
                yield cluster.balance()
        finally:
            redis.stop()


@pytest.fixture(
    params=[f"{era} caller, {path}, {s}" for s in SERVERS for era in ("legacy", "modern") for path in ("all", "one")]
)
def way(request: pytest.FixtureRequest, address: str) -> Iterator[Way]:
    who, path, server = request.param.split(", ")
    caller = RawCaller(f"{address}/mcp" if path == "all" else f"{address}/mcp/{server}", who.split()[0])
    yield Way(caller, server, f"{server}__" if path == "all" else "")
    caller.close()


def without_ours(result: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in result.items() if name not in ("resultType", "_meta")}
    meta = {key: value for key, value in result.get("_meta", {}).items() if not key.startswith(OURS)}
    return kept | ({"_meta": meta} if meta else {})


def test_a_tool_definition_arrives_as_the_upstream_wrote_it(way: Way) -> None:
    listed = exact(way.caller.request("tools/list"))["tools"]
    expected = [exact(text) for text in scripted.STRANGE]
    for definition in expected:
        definition["name"] = way.prefix + definition["name"]
    names = {definition["name"] for definition in expected}
    assert sorted((tool for tool in listed if tool["name"] in names), key=by_name) == sorted(expected, key=by_name)


def by_name(definition: dict[str, Any]) -> str:
    return str(definition["name"])


def test_a_result_arrives_as_the_upstream_wrote_it(way: Way) -> None:
    result = exact(way.caller.call(f"{way.prefix}strange"))
    written = f'{{{scripted.STRANGE_MEMBERS},"_meta":{{{scripted.STRANGE_META}}}}}'
    if way.prefix:  # among all servers, a link leads back to its own
        written = written.replace('"uri":"file://', f'"uri":"{way.server}+file://')
    assert without_ours(result) == exact(written)


def test_a_result_of_256_kib_arrives_whole(way: Way) -> None:
    result = json.loads(way.caller.call(f"{way.prefix}big"))
    assert without_ours(result) == {"content": [{"type": "text", "text": scripted.BIG_TEXT}]}


def test_numbers_beyond_every_machine_type_arrive_as_they_were_written(way: Way) -> None:
    result = exact(way.caller.call(f"{way.prefix}huge_number"))
    assert without_ours(result) == exact(f"{{{scripted.HUGE_NUMBER_MEMBERS}}}")


def test_what_a_caller_sends_reaches_the_upstream_as_it_was_written(way: Way) -> None:
    result = json.loads(way.caller.call(f"{way.prefix}mirror", ARGUMENTS, members=UNKNOWN_MEMBER, meta=FOREIGN_META))
    params = exact(result["content"][0]["text"])["params"]
    foreign = {key: value for key, value in params.pop("_meta").items() if not key.startswith(OURS)}
    foreign.pop("progressToken", None)
    assert foreign == exact(f"{{{FOREIGN_META}}}")
    assert params == exact(f'{{"name":"mirror","arguments":{ARGUMENTS},{UNKNOWN_MEMBER}}}')


def test_a_result_says_which_era_it_is_in(way: Way, request: pytest.FixtureRequest) -> None:
    result = json.loads(way.caller.call(f"{way.prefix}greet", '{"who":"you"}'))
    is_modern = request.node.callspec.params["way"].startswith("modern")
    assert result.get("resultType") == ("complete" if is_modern else None)
