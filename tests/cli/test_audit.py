"""`pactgate audit`: is the log what was written, said with its place; `pactgate explain`: the story of one call."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from pactgate.inbound.admin import LISTED_CALLS
from pactgate.protocol.versions import LATEST_MODERN
from tests.audit.logs import made
from tests.cli.program import Served, demo, run, write_config
from tests.support.eventually import eventually_blocking
from tests.support.facing import META, message, modern
from tests.support.raw_http import RawClient, post

CANARY = "canary-7f3a9c-secret"
TOKEN = {"PACTGATE_TOKEN": "9c1e7b52d04f8a63-ops-token"}
AUTH = {"anonymous": True, "tokens": {"ops": {"token": TOKEN["PACTGATE_TOKEN"], "roles": ["admin"]}}}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("audited")
    almanac = {**demo("almanac"), "env": {"API_KEY": CANARY}}
    write_config(
        folder,
        {"almanac": almanac},
        audit={"file": "audit.jsonl", "arguments": "values"},
        auth=AUTH,
        rateLimits={"enabled": False},
    )
    with Served(folder) as served:
        served.wait_for("ok +almanac ")
        yield served


def request_id(text: str) -> str:
    found = re.search(r"request id: (\S+)", text)
    assert found, text
    return found[1]


def test_a_good_log_holds_and_its_head_is_said(tmp_path: Path) -> None:
    made(tmp_path / "audit.jsonl", 40, max_bytes=2000)
    done = run(tmp_path, "audit", "verify", "audit.jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    assert "The chain is intact: " in done.stdout
    assert "40 calls" in done.stdout
    said = json.loads(run(tmp_path, "audit", "verify", "audit.jsonl", "--json").stdout)
    assert (said["valid"], said["calls"], said["breaks"]) == (True, 40, [])
    assert said["head"]["hash"] in done.stdout


def test_a_broken_log_is_named_with_file_line_and_reason(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    made(log, 3)
    log.write_bytes(log.read_bytes().replace(b"r1", b"rX"))
    done = run(tmp_path, "audit", "verify", str(log))
    assert done.returncode == 1
    assert "audit.jsonl:3: its content was changed" in done.stderr
    said = json.loads(run(tmp_path, "audit", "verify", str(log), "--json").stdout)
    assert (said["valid"], said["breaks"][0]["line"]) == (False, 3)


@pytest.mark.parametrize("words", [("verify",), ("verify", "nothing.jsonl"), ("show", "nothing.jsonl")])
def test_without_a_log_the_invocation_is_wrong(words: tuple[str, ...], tmp_path: Path) -> None:
    done = run(tmp_path, "audit", *words)
    assert done.returncode == 2
    assert "There is no" in done.stderr


def test_the_log_of_a_running_gateway_is_found_by_its_configuration_and_shown(gateway: Served) -> None:
    gateway.run("call", "date_facts", "date=2026-06-21")
    gateway.run("call", "date_facts", f"date={CANARY}")
    done = gateway.run_program("audit", "verify")
    assert done.returncode == 0, done.stderr
    shown = gateway.run("audit", "show").stdout
    assert "(log opened)" in shown
    assert "almanac.date_facts" in shown
    records = [json.loads(line) for line in gateway.run("audit", "show", "--json").stdout.splitlines()]
    calls = [record["arguments"] for record in records if record["kind"] == "call"]
    assert {"date": "2026-06-21"} in calls
    assert {"date": "***"} in calls
    assert CANARY not in (gateway.folder / "audit.jsonl").read_text()


def test_the_story_of_a_refused_call_says_where_it_stopped_and_what_to_do(gateway: Served) -> None:
    refused = gateway.run("call", "date_facts", "date:=3")
    done = gateway.run_program("explain", request_id(refused.stderr))
    assert done.returncode == 0, done.stderr
    lines = dict(re.split(" {2,}", line.strip(), maxsplit=1) for line in done.stdout.splitlines()[1:])
    assert lines["stopped at"] == "validate the arguments"
    assert "checked the rate limit" in lines["passed"]
    assert "call the server" in lines["not reached"]
    assert (lines["error"], lines["executed"], lines["source"]) == ("INVALID_INPUT", "no", "gateway")
    assert lines["requested name"] == "date_facts"
    assert "date must be a string" in lines["message"]
    assert lines["next"]


def test_the_story_of_an_answered_call_is_the_same_from_the_gateway_and_from_the_log(gateway: Served) -> None:
    answer = json.loads(gateway.run("call", "date_facts", "date=2026-06-22", "--json").stdout)
    known = answer["_meta"]["dev.pactgate/envelope"]["requestId"]
    told = json.loads(gateway.run("explain", known, "--json").stdout)
    read: dict[str, Any] = json.loads(
        run(gateway.folder, "explain", known, "--json", PACTGATE_URL="127.0.0.1:9").stdout
    )
    assert told["source"] == "gateway"
    assert read["source"].startswith("audit log")
    for fact in ("tool", "server", "category", "outcome", "verdict", "gates", "revision", "next", "durationMs"):
        assert told[fact] == read[fact], fact
    assert read["arguments"] == {"date": "2026-06-22"}


def test_the_tool_explain_tells_an_administrator_what_the_command_tells(gateway: Served) -> None:
    answer = json.loads(gateway.run("call", "date_facts", "date=2026-06-23", "--json").stdout)
    known = answer["_meta"]["dev.pactgate/envelope"]["requestId"]
    told = json.loads(gateway.run("explain", known, "--json", **TOKEN).stdout)
    by_tool = gateway.run("call", "explain", f"requestId={known}", "--server", "pactgate", "--json", **TOKEN)
    story = json.loads(by_tool.stdout)["structuredContent"]["story"]
    assert {**story, "time": None} == {**told, "time": None}


def test_a_call_through_tool_invoke_and_a_changed_setting_are_shown_as_what_they_are(gateway: Served) -> None:
    wish = json.dumps({"name": "almanac.date_facts", "arguments": {"date": "2026-06-24"}})
    by_tool = gateway.run("call", "tool_invoke", "--server", "pactgate", "--args", wish, "--json", **TOKEN)
    known = json.loads(by_tool.stdout)["_meta"]["dev.pactgate/envelope"]["requestId"]
    assert "via pactgate.tool_invoke" in gateway.run("explain", known, **TOKEN).stdout
    assert gateway.run("config", "set", "limits.maxArraySize", "77", **TOKEN).returncode == 0
    assert re.search(r"\(setting limits\.maxArraySize\).*100 -> 77", gateway.run("audit", "show").stdout)
    assert gateway.run("audit", "verify").returncode == 0


def test_without_an_id_the_last_calls_are_listed_and_an_unknown_one_is_said(gateway: Served) -> None:
    gateway.run("call", "nothing")
    listed = gateway.run("explain").stdout.splitlines()
    assert listed[0].split() == ["ID", "TIME", "TOOL", "OUTCOME", "MS", "EXECUTED", "SUBJECT"]
    assert "unknown_tool NOT_FOUND" in listed[1]
    done = gateway.run("explain", "no-such-call")
    assert done.returncode == 1
    assert "no-such-call not found" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_call_that_is_no_longer_listed_is_found_among_all_that_are_kept(gateway: Served) -> None:
    gateway.run("call", "no-such-tool")
    old = json.loads(gateway.run("explain", "last", "--json").stdout)["requestId"]
    asyncio.run(call_often(gateway, LISTED_CALLS + 1))
    assert old not in gateway.run("explain", "--json").stdout
    assert gateway.run("explain", old[:8]).stdout.startswith("no-such-tool: unknown tool")
    assert old in gateway.run("explain", "--failed", "--json").stdout


async def call_often(gateway: Served, count: int) -> None:
    async with RawClient(int(gateway.url.rpartition(":")[2])) as client:
        for _ in range(count):
            assert (await client.ask(modern("tools/call", name="date_facts"))).status == 200


def test_a_call_is_found_by_the_beginning_of_its_id_or_as_the_last_one(gateway: Served) -> None:
    gateway.run("call", "nothing")
    gateway.run("call", "date_facts", "date=2026-06-21")
    good, bad, *_ = json.loads(gateway.run("explain", "--json").stdout)
    assert gateway.run("explain", bad["requestId"][:8]).stdout.startswith("nothing: unknown tool")
    assert json.loads(gateway.run("explain", "last", "--json").stdout)["requestId"] == good["requestId"]
    assert json.loads(gateway.run("explain", "last", "--failed", "--json").stdout)["requestId"] == bad["requestId"]
    assert "ok" not in {row["outcome"] for row in json.loads(gateway.run("explain", "--failed", "--json").stdout)}
    shown = gateway.run_on_terminal("explain", NO_COLOR="1", COLUMNS="80")[1].decode().splitlines()
    assert shown[1].split()[0] == good["requestId"][:8]
    assert max(map(len, shown)) <= 80
    several = gateway.run("explain", "")
    assert (several.returncode, "several" in several.stderr) == (2, True)


def test_calls_and_unknown_credentials_are_traced_to_an_address(gateway: Served) -> None:
    assert gateway.run("call", "date_facts", "date=2026-06-21").returncode == 0
    assert gateway.run("tools", "--token", "guess-guess-guess-guess").returncode == 1

    def of_kind(kind: str) -> list[dict[str, Any]]:
        lines = (gateway.folder / "audit.jsonl").read_text(encoding="utf-8").splitlines()
        return [record for record in map(json.loads, lines) if record["kind"] == kind]

    (refused,) = eventually_blocking(lambda: of_kind("refused"))
    assert of_kind("call")[-1]["peer"] == "127.0.0.1"
    assert (refused["peer"], refused["attempts"]) == ("127.0.0.1", 1)
    assert "(log refused)" in gateway.run("audit", "show").stdout
    assert gateway.run_program("audit", "verify").returncode == 0
    logged = [line for line in gateway.log_lines() if line["event"] in ("RequestRefused", "CredentialsRefused")]
    assert {line["peer"] for line in logged} == {"127.0.0.1"}
    assert "GET /api/tools" in {line["target"] for line in logged if line["event"] == "RequestRefused"}
    with urlopen(f"{gateway.url}/api/calls", timeout=5) as answer:
        assert {call["peer"] for call in json.load(answer)["calls"]} == {"127.0.0.1"}


def test_a_read_and_a_listen_are_shown_and_explained_as_what_they_are(gateway: Served) -> None:
    port = int(gateway.url.rpartition(":")[2])

    async def read_and_listen() -> str:
        async with RawClient(port) as client:
            params: dict[str, Any] = {"uri": "pactgate://nothing", "_meta": META}
            headers = {"mcp_protocol_version": LATEST_MODERN, "mcp_method": "resources/read", "mcp_name": params["uri"]}
            answer = await client.post(message("resources/read", params), **headers)
        async with RawClient(port) as client:
            params = {"notifications": {"toolsListChanged": True}, "_meta": META}
            headers = {"mcp_protocol_version": LATEST_MODERN, "mcp_method": "subscriptions/listen"}
            await client.send(post(message("subscriptions/listen", params), **headers))
            await client.head()
            await client.event()
        return str(answer.json["error"]["data"]["requestId"])

    id_ = asyncio.run(read_and_listen())

    def shown() -> str:
        return run(gateway.folder, "audit", "show", "-n", "50").stdout

    eventually_blocking(lambda: "subscriptions/listen" in shown())  # the acknowledgement waits for no record
    assert "resources/read pactgate://nothing" in shown()
    told = run(gateway.folder, "explain", id_).stdout
    assert told.startswith("resources/read pactgate://nothing: unknown resource in ")
    assert re.search(r"method +resources/read on pactgate", told)
    assert "executed        no" in told
