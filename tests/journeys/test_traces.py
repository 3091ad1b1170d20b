"""Traces of calls: exported, decoded with OpenTelemetry's own messages, and compared with the conventions for MCP."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import ElicitRequestParams, ElicitResult
from opentelemetry import context, trace

from pactgate.app import Gateway
from pactgate.config.load import load
from pactgate.config.problems import ConfigurationError
from pactgate.core.context import CLIENT, ExecutionContext
from pactgate.telemetry.otlp_exporter import MAX_QUEUED
from tests.cli.program import scripted, write_config
from tests.support import callers, rest_api
from tests.support.asking import UPSTREAM as ASKING
from tests.support.asking import asker, person_thinks
from tests.support.facing import META, call, initialize, message, modern_call, notification
from tests.support.otlp_receiver import Collector, Received, collecting
from tests.support.raw_http import Answer, RawClient, post
from tests.support.servers import logged

CONVENTIONS = json.loads((Path(__file__).parents[1] / "telemetry" / "mcp_conventions.json").read_text())
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
METRICS = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
ECHO = "tools/call files.echo"


@asynccontextmanager
async def opened(
    folder: Path, servers: Mapping[str, Any], env: Mapping[str, str], **sections: Any
) -> AsyncIterator[int]:
    """A gateway on a port, with what the environment says of telemetry. Its spans have been sent when it has stopped."""
    settings = {"listen": {"port": 0}, "rateLimits": {"enabled": False}, **sections}
    config = load(write_config(folder, dict(servers), **settings), environ=env, overrides={})
    async with Gateway.open(config) as gateway:
        await gateway.discover()
        yield int((await gateway.serve_http()).rpartition(":")[2])


def to(collector: Collector, **more: str) -> dict[str, str]:
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **{f"OTEL_{name}": value for name, value in more.items()}}


def asked(name: str, arguments: dict[str, Any] | None = None, *, method: str = "tools/call", **meta: str) -> bytes:
    """A modern call with more in its `_meta`."""
    body = modern_call(name, arguments)
    body["params"]["_meta"] = {**META, **meta}
    return post(body, mcp_protocol_version="2026-07-28", mcp_method=method, mcp_name=name)


async def ask(port: int, data: bytes) -> Answer:
    async with RawClient(port) as client:
        return await client.ask(data)


async def held(port: int, count: int) -> None:
    """Waits until so many calls are under way."""
    async with asyncio.timeout(5):
        while b"pactgate_calls_held %d\n" % count not in (await ask(port, METRICS)).body:
            pass


async def session_of(client: RawClient) -> dict[str, str]:
    """The headers of a new legacy session."""
    session = (await client.post(initialize())).header("mcp-session-id")
    assert session is not None
    return {"mcp_session_id": session, "mcp_protocol_version": "2025-11-25"}


async def ask_legacy(port: int, body: dict[str, Any], **headers: str) -> Answer:
    async with RawClient(port) as client:
        return await client.post(body, **await session_of(client), **headers)


def check(span: Received) -> None:
    """A span says what the conventions want, and nothing else but what is ours."""
    rules = CONVENTIONS["spans"][span.kind.lower()]
    wanted = set(rules["required"])
    if span.attributes["mcp.method.name"] == "tools/call" and "gen_ai.tool.name" in span.attributes:
        wanted |= set(rules["tool call"]) - ({"jsonrpc.request.id"} if span.kind == "CLIENT" else set())
        assert span.attributes["gen_ai.operation.name"] == CONVENTIONS["tool call operation"]
        assert span.name == f"tools/call {span.attributes['gen_ai.tool.name']}"
    assert wanted <= span.attributes.keys()
    assert [name for name in span.attributes if not name.startswith("pactgate.") and name not in rules["known"]] == []
    assert span.attributes["network.transport"] in CONVENTIONS["transports"]
    code = span.attributes.get("rpc.response.status_code")
    if code is not None:
        assert span.is_error == (int(code) not in rules["codes that are no errors"])
    assert span.is_error == ("error.type" in span.attributes)


@pytest.mark.parametrize("server_era", ["legacy", "modern"])
@pytest.mark.parametrize("client_era", ["legacy", "modern"])
async def test_a_call_is_a_server_span_and_a_client_span_in_every_pairing_of_eras(
    tmp_path: Path, client_era: str, server_era: str
) -> None:
    log = tmp_path / "received.jsonl"
    with collecting() as collector:
        async with opened(tmp_path, {"files": scripted(era=server_era, log=str(log))}, to(collector)) as port:
            if client_era == "modern":
                await ask(
                    port, asked("files__echo", {"text": "x"}, traceparent=PARENT, tracestate="a=1", baggage="b=2")
                )
            else:
                body = call("files__echo", {"text": "x"})
                body["params"]["_meta"] = {"traceparent": PARENT, "tracestate": "a=1", "baggage": "b=2"}
                await ask_legacy(port, body)
    (server,), (client,) = collector.named(ECHO), collector.named(ECHO, "CLIENT")
    check(server)
    check(client)
    assert (server.trace_id, server.parent_id, server.state) == (TRACE, SPAN, "a=1")
    assert (client.trace_id, client.parent_id) == (TRACE, server.span_id)
    assert 0 < client.duration_ms < server.duration_ms
    versions = {"legacy": "2025-11-25", "modern": "2026-07-28"}
    assert server.attributes["mcp.protocol.version"] == versions[client_era]
    assert client.attributes["mcp.protocol.version"] == versions[server_era]
    assert (server.attributes["client.address"], client.attributes["network.transport"]) == ("127.0.0.1", "pipe")
    assert ("mcp.session.id" in server.attributes) is (client_era == "legacy")
    (sent,) = [entry["params"]["_meta"] for entry in logged(log) if entry["method"] == "tools/call"]
    assert sent["traceparent"] == f"00-{TRACE}-{client.span_id}-01"
    assert (sent["tracestate"], sent["baggage"]) == ("a=1", "b=2")


async def test_the_context_of_http_is_the_parent_or_where_the_message_names_one_a_link(tmp_path: Path) -> None:
    ambient = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01"
    with collecting() as collector:
        async with opened(tmp_path, {"files": scripted()}, to(collector)) as port:
            for meta in ({}, {"traceparent": PARENT}):
                body = call("files__echo", {"text": "x"})
                body["params"]["_meta"] = meta
                await ask_legacy(port, body, traceparent=ambient)
    first, second = collector.named(ECHO)
    assert (first.trace_id, first.parent_id, first.links) == (ambient[3:35], ambient[36:52], [])
    assert (second.trace_id, second.links) == (TRACE, [ambient[3:52]])


async def test_an_invalid_context_is_dropped_and_counted_and_the_call_is_answered(tmp_path: Path) -> None:
    log = tmp_path / "received.jsonl"
    with collecting() as collector:
        async with opened(tmp_path, {"files": scripted(log=str(log))}, to(collector)) as port:
            answer = await ask(
                port, asked("files__echo", {"text": "x"}, traceparent=f"00-{'0' * 32}-{SPAN}-01", tracestate="a=1")
            )
            metrics = (await ask(port, METRICS)).body
    assert "result" in answer.json
    (server,) = collector.named(ECHO)
    assert (server.parent_id, server.state) == ("", "")
    assert b"pactgate_traces_invalid_context_total 1\n" in metrics
    (sent,) = [entry["params"]["_meta"] for entry in logged(log) if entry["method"] == "tools/call"]
    assert sent["traceparent"].startswith(f"00-{server.trace_id}-")
    assert "tracestate" not in sent


@pytest.mark.parametrize("is_traced", [False, True])
async def test_what_is_not_sampled_goes_on_as_it_came_and_is_not_exported(tmp_path: Path, is_traced: bool) -> None:
    log, parent = tmp_path / "received.jsonl", PARENT.removesuffix("1") + "0"
    with collecting() as collector:
        env = to(collector) if is_traced else {}
        async with opened(tmp_path, {"files": scripted(log=str(log))}, env) as port:
            await ask(port, asked("files__echo", {"text": "x"}, traceparent=parent, baggage="b=2"))
    assert collector.spans == []
    (sent,) = [entry["params"]["_meta"] for entry in logged(log) if entry["method"] == "tools/call"]
    assert (sent["traceparent"], sent["baggage"]) == (parent, "b=2")


@pytest.mark.parametrize("is_wanted", [False, True])
async def test_arguments_and_results_are_in_a_span_only_where_they_are_wanted_and_without_secrets(
    tmp_path: Path, is_wanted: bool
) -> None:
    server = {**scripted(), "env": {"TOKEN": "hunter2-hunter2"}}
    with collecting() as collector:
        async with (
            opened(tmp_path, {"files": server}, to(collector), telemetry={"content": is_wanted}) as port,
            RawClient(port) as client,
        ):
            for text in ("plain", 'with "hunter2-hunter2"', "x" * 9000):
                await client.ask(asked("files__echo", {"text": text}))
    found = [span.attributes for span in collector.named(ECHO)]
    assert all(("gen_ai.tool.call.arguments" in one) is is_wanted for one in found)
    assert all(("gen_ai.tool.call.result" in one) is is_wanted for one in found)
    if is_wanted:
        assert found[0]["gen_ai.tool.call.arguments"] == '{"text": "plain"}'
        assert "plain" in found[0]["gen_ai.tool.call.result"]
        assert found[1]["gen_ai.tool.call.arguments"] == '{"text":"with \\"***\\""}'
        assert [len(found[2][f"gen_ai.tool.call.{part}"]) for part in ("arguments", "result")] == [4096] * 2
    assert "hunter2" not in str(found)


@pytest.mark.parametrize("server_era", ["legacy", "modern"])
@pytest.mark.parametrize("client_era", ["legacy", "modern"])
async def test_failed_cancelled_late_and_cached_calls_are_told_apart_in_every_pairing_of_eras(
    tmp_path: Path, client_era: str, server_era: str
) -> None:
    kept = {"tools": {"files.echo": {"ttlMs": 60000}}}
    limits = {"toolOverrides": {"files.slow": 100}}
    servers = {"files": scripted(era=server_era), "patient": scripted(era=server_era)}
    with collecting() as collector:
        async with opened(
            tmp_path, servers, to(collector), cache=kept, timeouts=limits, categories={"files.echo": "query"}
        ) as port:
            async with RawClient(port) as client:
                session = await session_of(client) if client_era == "legacy" else {}

                def a_call(name: str, arguments: dict[str, Any] | None = None) -> bytes:
                    return post(call(name, arguments), **session) if session else asked(name, arguments)

                for _ in range(2):
                    await client.ask(a_call("files__echo", {"text": "x"}))
                await client.ask(a_call("files__slow", {"ms": 5000}))
                await client.ask(a_call("files__refuse", {"code": -32602}))
                await client.ask(a_call("files__none"))
                await client.send(a_call("patient__slow", {"ms": 50000}))
                await held(port, 1)
                if session:  # a connection that ends is no cancellation there
                    await ask(port, post(notification("notifications/cancelled", {"requestId": 1}), **session))
                    await held(port, 0)
            await held(port, 0)
    for span in collector.spans:
        check(span)
    assert (len(collector.named(ECHO)), len(collector.named(ECHO, "CLIENT"))) == (2, 1)
    assert [span.attributes["pactgate.cached"] for span in collector.named(ECHO)] == [False, True]
    (late,) = collector.named("tools/call files.slow")
    assert (late.attributes["error.type"], late.attributes["pactgate.outcome"]) == ("-32603", "timeout")
    assert collector.named("tools/call files.slow", "CLIENT")[0].attributes["error.type"] == "timeout"
    (refused,) = collector.named("tools/call files.refuse", "CLIENT")
    assert (refused.attributes["error.type"], refused.attributes["rpc.response.status_code"]) == ("-32602", "-32602")
    for kind in ("SERVER", "CLIENT"):
        (cancelled,) = collector.named("tools/call patient.slow", kind)
        assert cancelled.attributes["error.type"] == "cancelled"
    assert {span.attributes["pactgate.era.client"] for span in collector.named(ECHO)} == {client_era}
    assert {span.attributes["pactgate.era.server"] for span in collector.named(ECHO, "CLIENT")} == {server_era}
    (unknown,) = collector.named("tools/call")
    assert (unknown.attributes["rpc.response.status_code"], unknown.is_error) == ("-32602", False)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_each_request_of_a_call_that_asks_its_client_is_a_span_in_the_trace_it_names(
    tmp_path: Path, era: str
) -> None:
    capable = {
        **META,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        "traceparent": PARENT,
    }
    params: dict[str, Any] = {"name": "asking__ask", "arguments": {}, "_meta": capable}
    head = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "asking__ask"}
    server = {
        "command": sys.executable,
        "args": [str(ASKING), json.dumps({"era": era})],
        "era": era,
        "isolation": "session",
    }
    with collecting() as collector:
        async with opened(tmp_path, {"asking": server}, to(collector)) as port:
            first = (await ask(port, post(message("tools/call", params), **head))).json["result"]
            (key,) = first["inputRequests"]
            answers = {key: {"action": "accept", "content": {"name": "Ann"}}}
            again = {**params, "inputResponses": answers, "requestState": first["requestState"]}
            last = (await ask(port, post(message("tools/call", again, 2), **head))).json["result"]
    assert "Ann" in last["content"][0]["text"]
    name = "tools/call asking.ask"
    assert [(span.trace_id, span.parent_id) for span in collector.named(name)] == [(TRACE, SPAN)] * 2
    own = [span.span_id for span in collector.named(name)]
    assert [span.parent_id for span in collector.named(name, "CLIENT")] == own


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_call_that_asks_a_legacy_client_on_its_way_is_one_span_and_says_how_long_it_waited(
    tmp_path: Path, era: str
) -> None:
    async def elicit(context: object, params: ElicitRequestParams) -> ElicitResult:
        await person_thinks(0.2)
        return ElicitResult(action="accept", content={"name": "Ann"})

    server = {"command": sys.executable, "args": [str(ASKING), json.dumps({"era": era})], "era": era}
    with collecting() as collector:
        async with opened(tmp_path, {"asking": {**server, "isolation": "session"}}, to(collector)) as port:
            url = f"http://127.0.0.1:{port}/mcp"
            async with Client(url, mode="legacy", elicitation_callback=elicit) as client:
                assert "Ann" in str((await client.call_tool("asking__ask", {})).content)
    name = "tools/call asking.ask"
    (one,), (sent,) = collector.named(name), collector.named(name, "CLIENT")
    check(one)
    check(sent)
    assert sent.parent_id == one.span_id
    assert one.attributes["pactgate.client_ms"] > 150


async def test_the_time_a_client_was_asked_is_no_time_of_the_server(tmp_path: Path) -> None:
    server = {"command": sys.executable, "args": [str(ASKING), "{}"], "era": "legacy", "isolation": "session"}
    config = load(write_config(tmp_path, {"asking": server}), environ={}, overrides={})
    async with Gateway.open(config) as gateway:
        await gateway.discover()

        async def answer(method: str, params: bytes) -> bytes:
            with suppress(TimeoutError):  # a person who thinks
                async with asyncio.timeout(0.25):
                    await asyncio.Event().wait()
            return b'{"action":"accept","content":{"name":"Ann"}}'

        ctx = ExecutionContext("tools/call", asker(answer=answer), time.monotonic())
        await gateway.kernel.handle(ctx, callers.call("asking__ask"))
    record = ctx.record
    assert record is not None
    assert record.waited_ms(CLIENT) > 200 > record.server_ms


async def test_a_rest_server_gets_the_context_as_a_header(tmp_path: Path) -> None:
    with collecting() as collector:
        async with rest_api.serving() as api:
            servers = {"shop": {"baseUrl": api.origin, "endpoints": [rest_api.GET_ITEM]}}
            async with opened(tmp_path, servers, to(collector)) as port:
                await ask(port, asked("shop__get_item", {"id": "7"}, traceparent=PARENT))
            (sent,) = api.requests
    (client,) = collector.named("tools/call shop.get_item", "CLIENT")
    assert sent.headers["traceparent"] == f"00-{TRACE}-{client.span_id}-01"
    assert (client.attributes["server.address"], client.attributes["server.port"]) == (
        "127.0.0.1",
        int(api.origin.rpartition(":")[2]),
    )


async def test_the_official_client_and_two_gateways_in_a_row_make_one_trace(tmp_path: Path) -> None:
    inner_folder, outer_folder = tmp_path / "inner", tmp_path / "outer"
    inner_folder.mkdir()
    outer_folder.mkdir()
    with collecting() as collector:
        async with opened(inner_folder, {"files": scripted()}, to(collector, SERVICE_NAME="inner")) as inner:
            servers = {"inner": {"url": f"http://127.0.0.1:{inner}/mcp"}}
            async with opened(outer_folder, servers, to(collector, SERVICE_NAME="outer")) as outer:
                around = trace.SpanContext(
                    int(TRACE, 16), int(SPAN, 16), is_remote=False, trace_flags=trace.TraceFlags(1)
                )
                token = context.attach(trace.set_span_in_context(trace.NonRecordingSpan(around)))
                try:
                    async with Client(f"http://127.0.0.1:{outer}/mcp") as client:
                        await client.call_tool("inner__files__echo", {"text": "x"})
                finally:
                    context.detach(token)
    spans = {(span.resource["service.name"], span.kind): span for span in collector.spans if "echo" in span.name}
    walk = [spans["outer", "SERVER"], spans["outer", "CLIENT"], spans["inner", "SERVER"], spans["inner", "CLIENT"]]
    assert {span.trace_id for span in walk} == {TRACE}
    assert [span.parent_id for span in walk] == [SPAN, *(span.span_id for span in walk[:3])]


async def test_a_collector_that_hangs_costs_spans_and_nothing_else(tmp_path: Path) -> None:
    with collecting(hangs=True) as collector:
        env = to(collector, EXPORTER_OTLP_TIMEOUT="200")
        async with opened(tmp_path, {"files": scripted()}, env) as port, RawClient(port) as client:
            for _ in range(MAX_QUEUED // 8):
                assert "result" in (await client.ask(asked("files__echo", {"text": "x"}))).json
            seen = await client.ask(METRICS)
    assert collector.spans == []
    found = re.search(rb"^pactgate_traces_exported_total (\d+)$", seen.body, re.MULTILINE)
    assert found is not None
    assert found[1] == b"0"


async def test_the_variables_of_opentelemetry_are_honoured_and_the_file_counts_more(tmp_path: Path) -> None:
    with collecting() as collector:
        env = to(
            collector,
            SERVICE_NAME="edge",
            RESOURCE_ATTRIBUTES="deployment.environment.name=lab,a=%20b",
            EXPORTER_OTLP_HEADERS="x-key=s3cret%21",
        )
        async with opened(tmp_path, {"files": scripted()}, env, telemetry={"serviceName": "named-in-the-file"}) as port:
            await ask(port, asked("files__echo", {"text": "x"}))
        nothing = {**env, "OTEL_SDK_DISABLED": "true"}
        async with opened(tmp_path, {"files": scripted()}, nothing) as port:
            await ask(port, asked("files__echo", {"text": "x"}))
    (span,) = collector.named(ECHO)
    assert (span.resource["service.name"], span.resource["a"]) == ("named-in-the-file", " b")
    assert span.resource["deployment.environment.name"] == "lab"
    assert collector.headers[0]["x-key"] == "s3cret!"
    with pytest.raises(ConfigurationError):
        load(write_config(tmp_path, {}), environ={**env, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, overrides={})


async def test_sampling_keeps_its_part_and_heeds_no_parent_where_it_is_told_so(tmp_path: Path) -> None:
    with collecting() as collector:
        env = to(collector, TRACES_SAMPLER="always_off")
        async with opened(tmp_path, {"files": scripted()}, env) as port:
            await ask(port, asked("files__echo", {"text": "x"}, traceparent=PARENT))
        env = to(collector, TRACES_SAMPLER="parentbased_traceidratio", TRACES_SAMPLER_ARG="0.5")
        async with opened(tmp_path, {"files": scripted()}, env) as port, RawClient(port) as client:
            for _ in range(100):
                await client.ask(asked("files__echo", {"text": "x"}))
    assert 20 < len(collector.named(ECHO)) < 80


async def test_explain_finds_a_call_by_its_trace_and_a_bucket_names_it(tmp_path: Path) -> None:
    with collecting() as collector:
        async with opened(tmp_path, {"files": scripted()}, to(collector)) as port:
            await ask(port, asked("files__echo", {"text": "x"}, traceparent=PARENT))
            story = await ask(port, f"GET /api/calls/{TRACE} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            accept = "Accept: application/openmetrics-text; version=1.0.0"
            metrics = await ask(port, f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n{accept}\r\n\r\n".encode())
    assert (story.json["traceId"], story.json["tool"]) == (TRACE, "files.echo")
    assert f' # {{trace_id="{TRACE}"}} '.encode() in metrics.body
