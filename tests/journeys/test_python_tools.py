"""The tool contract, invariant by invariant, for tools written in Python: a whole gateway in front of a real runner."""

from __future__ import annotations

import asyncio
import copy
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pactgate.app import Gateway, build
from pactgate.config.model import Config
from pactgate.config.sections.effects import Effects
from pactgate.config.server_settings import ServerConfig
from pactgate.core import events
from pactgate.core.context import ExecutionRecord
from pactgate.core.events import Event
from pactgate.core.values import Caller
from pactgate.protocol.versions import Era
from pactgate.upstreams import python_tools
from tests.cli.program import put
from tests.pipeline.conftest import Inside, text_of
from tests.runner.driving import PROGRAM
from tests.support.callers import Heard, caller
from tests.support.python_tools import DEEDS, KIT, kit
from tests.upstreams.confinement import needs_kernel, world

UNDENIABLE = ("filesystem.write", "network", "process", "network", "process")


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner looks at its files ten times a second."""
    command = (sys.executable, "-P", "-c", PROGRAM)
    monkeypatch.setattr(python_tools, "interpreter_of", lambda *_: command)


class Opened:
    """A gateway with the kit behind it, and what it said."""

    def __init__(self, server: ServerConfig, settings: dict[str, Any]) -> None:
        self.events: list[Event] = []
        self._happened = asyncio.Event()
        self.gateway = build(Config(servers={server.id: server}, **settings), self._take)
        self.inside = Inside(self.gateway, self.events)

    async def invoke(self, tool: str, **arguments: Any) -> dict[str, Any]:
        async with asyncio.timeout(10):
            return await self.gateway.invoke(f"kit.{tool}", arguments)

    def record(self, envelope: dict[str, Any]) -> ExecutionRecord:
        wanted = envelope["metadata"]["requestId"]
        records: list[ExecutionRecord] = [one.record for one in self.heard(events.RequestFinished)]
        return next(record for record in records if record.request_id == wanted)

    def heard(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    async def hear(self, kind: type[Event], **facts: Any) -> Any:
        """The first event of this kind with these facts, waited for if need be."""
        async with asyncio.timeout(5):
            while True:
                for event in self.heard(kind):
                    if all(getattr(event, name) == fact for name, fact in facts.items()):
                        return event
                self._happened.clear()
                await self._happened.wait()

    def _take(self, event: Event) -> None:
        self.events.append(event)
        self._happened.set()


@asynccontextmanager
async def opened_gateway(server: ServerConfig, **settings: Any) -> AsyncIterator[Opened]:
    opened = Opened(server, settings)
    await opened.gateway.start()
    try:
        yield opened
    finally:
        await opened.gateway.stop(grace_s=0)


@pytest.fixture
def kit_opened(tmp_path: Path) -> Callable[..., Any]:
    def opened(server: dict[str, Any] | None = None, **settings: Any) -> Any:
        return opened_gateway(kit(tmp_path, **(server or {})), **settings)

    return opened


@pytest.mark.requirement("S2/MCP-001")
async def test_input_is_judged_before_and_output_after_and_a_bad_value_is_never_a_success(kit_opened: Any) -> None:
    async with kit_opened() as opened:
        assert (await opened.invoke("grow", item={"tags": "x"}))["error"]["code"] == "INVALID_INPUT"
        assert (await opened.invoke("grow", item={"tags": []}, more=1))["error"]["code"] == "INVALID_INPUT"
        for what in ("nothing", "wrong"):
            failed = await opened.invoke("give", what=what)
            assert (failed["success"], failed["error"]["code"]) == (False, "INVALID_OUTPUT")
            assert "data" not in failed
        good = await opened.invoke("give", what="good")
        assert good["data"]["structuredContent"] == {"tags": ["a"]}


@pytest.mark.requirement("S2/MCP-002")
async def test_as_an_observed_tool_the_liar_is_found_out_and_honest_tools_beside_it_are_not_blamed(
    kit_opened: Any, tmp_path: Path
) -> None:
    with world(tmp_path / "there") as at:
        async with kit_opened() as opened:
            await opened.invoke("honest", rounds=1)
            where = {"folder": at["folder"], "tcp": at["tcp"], "udp": at["udp"]}
            beside = [opened.invoke("honest") for _ in range(10)]
            lies = [opened.invoke("lie", **where) for _ in range(3)]
            *honest, first, second, third = await asyncio.gather(*beside, *lies)
            reported = opened.heard(events.EffectsExceeded)
            shown = await opened.inside.call("kit.lie", where, who=caller())
    for lie in (first, second, third):
        assert lie["data"]["structuredContent"] == dict.fromkeys(DEEDS, "done")
        record = opened.record(lie)
        assert record.effects_level == "observed"
        assert tuple(one.kind for one in record.violations) == UNDENIABLE
        assert record.violations[0].target == str(Path(at["folder"]) / "new")
        assert record.violations == record.operations
    for calm in honest:
        record = opened.record(calm)
        assert (calm["success"], record.operations, record.violations) == (True, (), ())
    assert {event.tool for event in reported} == {"kit.lie"}
    assert len(reported) == 3
    envelope = json.loads(shown.result)["_meta"]["dev.pactgate/envelope"]
    assert envelope["effects"] == "observed"
    assert [one["kind"] for one in envelope["violations"]] == list(UNDENIABLE)


@pytest.mark.requirement("S2/MCP-002")
async def test_a_liar_that_never_answers_is_found_out_all_the_same(kit_opened: Any, tmp_path: Path) -> None:
    async with kit_opened() as opened:
        await opened.invoke("honest", rounds=1)
        path = str(tmp_path / "quietly")
        late = await opened.gateway.invoke("kit.lie_and_hang", {"path": path}, timeout_ms=300)
        assert late["error"]["code"] == "TOOL_TIMEOUT"
        told = await opened.hear(events.EffectsExceeded, tool="kit.lie_and_hang")
    assert told.operations == (f"filesystem.write {path}",)


@pytest.mark.requirement("S2/MCP-002")
async def test_where_undeclared_effects_are_refused_the_liar_achieves_nothing_python_sees(
    kit_opened: Any, tmp_path: Path
) -> None:
    with world(tmp_path / "there") as at:
        async with kit_opened({"undeclared_effects": "refuse"}) as opened:
            lie = await opened.invoke("lie", folder=at["folder"], tcp=at["tcp"], udp=at["udp"])
            calm = await opened.invoke("honest")
        assert not (Path(at["folder"]) / "new").exists()
    assert "done" not in lie["data"]["structuredContent"].values()
    assert all(one.refused for one in opened.record(lie).violations)
    assert calm["success"]


@needs_kernel
@pytest.mark.requirement("S2/MCP-002")
async def test_as_an_enforced_child_the_same_liar_is_denied_everything_and_honest_tools_go_on(
    kit_opened: Any, tmp_path: Path
) -> None:
    with world(tmp_path / "there") as at:
        async with kit_opened({"effects": Effects()}) as opened:
            where = {"folder": at["folder"], "tcp": at["tcp"], "udp": at["udp"]}
            lie, calm = await asyncio.gather(opened.invoke("lie", **where), opened.invoke("honest"))
            (row,) = opened.gateway.snapshot()["servers"]
        assert not (Path(at["folder"]) / "new").exists()
    assert set(lie["data"]["structuredContent"].values()) <= {"EACCES", "EPERM"}
    assert (row["effectsLevel"], opened.record(lie).effects_level) == ("enforced", "enforced")
    assert calm["success"]


@pytest.mark.requirement("S2/MCP-003")
@pytest.mark.parametrize(
    ("said", "code"), [("GONE", "GONE"), ("NOT_FOUND", "NOT_FOUND"), ("MADE_UP", "OPERATION_FAILED")]
)
async def test_a_declared_code_is_kept_and_an_undeclared_one_is_mapped_and_reported(
    kit_opened: Any, said: str, code: str
) -> None:
    async with kit_opened() as opened:
        failed = await opened.invoke("fail", code=said)
        on_the_wire = json.loads((await opened.inside.call("kit.fail", {"code": said})).result)
    assert failed["error"]["code"] == code
    assert failed["error"]["message"] == f"Failed with {said}."
    assert failed["error"]["context"]["asked"] == said
    assert opened.record(failed).tool_code == code
    assert on_the_wire["_meta"]["dev.pactgate/envelope"]["failure"]["code"] == code
    assert "dev.pactgate/error" not in on_the_wire["_meta"]
    assert {event.code for event in opened.heard(events.CodeReplaced)} == ({said} if code != said else set())


@pytest.mark.requirement("S2/MCP-003")
async def test_an_exception_is_an_internal_error_and_its_traceback_is_for_the_operator_alone(kit_opened: Any) -> None:
    async with kit_opened() as opened:
        failed = await opened.invoke("crash")
        reported = await opened.hear(events.ToolReported)
    assert failed["error"]["code"] == "INTERNAL_ERROR"
    assert "a secret" not in json.dumps(failed)
    assert (reported.tool, reported.what) == ("kit.crash", "crashed")
    assert "KeyError: 'a secret'" in reported.text


@pytest.mark.requirement("S2/MCP-004")
async def test_what_a_tool_declares_of_repeating_it_decides_what_is_said_of_retrying(kit_opened: Any) -> None:
    async with kit_opened() as opened:
        busy = (await opened.invoke("be_busy"))["error"]
        assert (busy["code"], busy["retryable"], busy["context"]["transient"]) == ("BUSY", True, True)
        for code in ("GONE", "SERVICE_UNAVAILABLE", "RATE_LIMITED", "TOOL_TIMEOUT", "MEMORY_PRESSURE", "MADE_UP"):
            assert (await opened.invoke("fail", code=code))["error"]["retryable"] is False
        rows = {row["toolName"]: row for row in opened.gateway.snapshot()["tools"]}
    assert (rows["fail"]["category"], rows["fail"]["isIdempotent"]) == ("mutation", False)
    assert rows["fail"]["contract"]["idempotent"] is False
    assert (rows["grow"]["category"], rows["grow"]["categoryReason"]) == ("query", "declared in its contract")
    assert {row["effectsLevel"] for row in rows.values()} == {"observed"}


@pytest.mark.requirement("S2/MCP-005")
async def test_the_arguments_of_a_caller_are_the_same_after_the_call_also_when_calls_share_them(
    kit_opened: Any,
) -> None:
    arguments = {"item": {"tags": ["yours"]}}
    before = copy.deepcopy(arguments)
    async with kit_opened() as opened:
        answers = await asyncio.gather(*(opened.invoke("grow", **arguments) for _ in range(20)))
    assert arguments == before
    assert [one["data"]["structuredContent"] for one in answers] == [{"tags": ["yours", "mine"]}] * 20


@pytest.mark.requirement("S2/MCP-005")
async def test_what_is_kept_of_a_call_is_not_changed_by_it(kit_opened: Any) -> None:
    async with kit_opened() as opened:
        first = await opened.invoke("count")
        again = await opened.invoke("count")
        first["data"]["structuredContent"]["result"] = 99
        third = await opened.invoke("count")
    assert [one["metadata"]["cached"] for one in (first, again, third)] == [False, True, True]
    assert third["data"]["structuredContent"] == {"result": 1}
    assert opened.record(again).operations == ()


@pytest.mark.usefixtures("followed")
async def test_a_file_that_changes_is_served_as_it_is_now(kit_opened: Any, tmp_path: Path) -> None:
    async with kit_opened() as opened:
        assert (await opened.invoke("honest", rounds=1))["success"]
        added = '\n@tool(category="query", idempotent=True, effects=[])\ndef newer() -> int:\n    """Is new."""\n    return 1\n'
        put(tmp_path / "kit.py", KIT + added)
        await opened.hear(events.ToolReported, what="reloaded")
        assert (await opened.gateway.discover(force_refresh=True)).server_results[0].tool_count == 11
        assert (await opened.invoke("newer"))["success"]


async def test_a_file_that_can_not_be_served_is_named_with_every_problem(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text(
        "from pactgate import tool\n@tool(idempotent=2)\ndef one():\n    pass\n@tool\ndef two():\n    pass\n"
    )
    server = ServerConfig(id="bad", tools=str(path))
    async with Gateway.open(Config(servers={"bad": server})) as gateway:
        (row,) = (await gateway.discover()).server_results
        failed = await gateway.invoke("bad.one")
    assert row.error is not None
    for word in (f"{path}:2: one: ", f"{path}:5: two: ", "idempotent"):
        assert word in row.error
        assert word in failed["error"]["message"]


async def test_a_contract_in_the_definition_of_a_foreign_server_is_not_believed(tmp_path: Path) -> None:
    put(tmp_path / "kit.py", KIT)
    foreign = ServerConfig(
        id="kit", command=sys.executable, args=("-m", "pactgate.runner", str(tmp_path / "kit.py")), era="legacy"
    )
    async with opened_gateway(foreign) as opened:
        failed = await opened.invoke("fail", code="GONE")
        rows = {row["toolName"]: row for row in opened.gateway.snapshot()["tools"]}
    assert failed["error"]["code"] == "OPERATION_FAILED"
    assert rows["fail"]["contract"] is None
    assert rows["fail"]["categoryReason"] != "declared in its contract"
    assert opened.record(failed).effects_level == "declared", "by its annotations, which the gateway does not verify"


@pytest.mark.usefixtures("followed")
async def test_a_new_version_with_a_mistake_is_named_with_the_server_and_the_old_one_serves_on(
    kit_opened: Any, tmp_path: Path
) -> None:
    async with kit_opened() as opened:
        assert (await opened.invoke("honest", rounds=1))["success"]
        put(tmp_path / "kit.py", KIT + "\nraise ValueError('half written')\n")
        await opened.hear(events.ToolReported, what="not_reloaded")
        (row,) = opened.gateway.snapshot()["servers"]
        assert "half written" in row["leftOut"][0]
        assert (await opened.invoke("honest", rounds=1))["success"]
        put(tmp_path / "kit.py", KIT)
        await opened.hear(events.ToolReported, what="reloaded")
        assert opened.gateway.snapshot()["servers"][0]["leftOut"] == []


async def test_a_secret_of_the_configuration_is_masked_in_what_a_tool_was_seen_to_do(
    kit_opened: Any, tmp_path: Path
) -> None:
    secret = "token-0123456789"
    (tmp_path / secret).mkdir()
    with world(tmp_path / "there") as at:
        async with kit_opened(secrets=(secret,)) as opened:
            where = {"folder": str(tmp_path / secret), "tcp": at["tcp"], "udp": at["udp"]}
            record = opened.record(await opened.invoke("lie", **where))
    assert record.violations[0].target == str(tmp_path / "***" / "new")
    assert secret not in repr(opened.heard(events.EffectsExceeded))


ASKING = """
from typing import Literal
from pactgate import Call, Image, prompt, resource, tool

@tool
def order(call: Call) -> str:
    "Orders."
    call.log("asked", "warning")
    return f"{call.ask('How many?', int)} for {call.caller.name}"

@tool
def draw() -> list[str | Image]:
    "Draws."
    return ["here", Image(b"PNG")]

@resource("kit://{number}")
def part(number: int) -> dict[str, int]:
    "A part."
    return {"number": number}

@prompt
def review(text: str) -> str:
    "A review."
    return f"Review {text}"
"""
ANSWER = {"action": "accept", "content": {"answer": 3}}


class Person(Heard):
    """A legacy client whose user answers at once."""

    can_ask = True

    async def ask(self, method: str, params: bytes) -> bytes:
        self.notes.append((method, params))
        return json.dumps(ANSWER).encode()


@pytest.fixture
def asking(tmp_path: Path) -> ServerConfig:
    return replace(kit(tmp_path), tools=write(tmp_path / "asking.py", ASKING))


def heard_by(who: Caller) -> list[tuple[str, bytes]]:
    assert isinstance(who.channel, Heard)
    return who.channel.notes


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


async def test_a_tool_asks_the_user_of_a_modern_client_with_a_result(asking: ServerConfig) -> None:
    who = caller(Era.MODERN, key="ann", capabilities={"elicitation": {}}, log_level="info")
    async with opened_gateway(asking) as opened:
        await opened.gateway.connections.settle()
        first = json.loads((await opened.inside.call("kit__order", {}, who=who)).result or b"")
        ((key, question),) = first["inputRequests"].items()
        assert question["params"]["message"] == "How many?"
        last = await opened.inside.call(
            "kit__order", {}, who=who, requestState=first["requestState"], inputResponses={key: ANSWER}
        )
        assert text_of(last) == "3 for ann"
        told = b'{"level":"warning","logger":"order","data":"asked"}'
        assert heard_by(who) == [("notifications/message", told)]
        stranger = caller(Era.MODERN, key="eve", capabilities={"elicitation": {}})
        again = json.loads((await opened.inside.call("kit__order", {}, who=who)).result or b"")
        refused = await opened.inside.call(
            "kit__order", {}, who=stranger, requestState=again["requestState"], inputResponses={key: ANSWER}
        )
        assert refused.error is not None


async def test_a_tool_asks_the_user_of_a_legacy_client_with_a_request(asking: ServerConfig) -> None:
    who = replace(caller(key="bob", capabilities={"elicitation": {}}, session="s"), channel=Person())
    async with opened_gateway(asking) as opened:
        await opened.gateway.connections.settle()
        assert text_of(await opened.inside.call("kit__order", {}, who=who)) == "3 for bob"
        assert "elicitation/create" in [method for method, _ in heard_by(who)]
        silent = await opened.inside.call("kit__order", {})
        assert text_of(silent) == "This client can't ask its user."


async def test_images_resources_and_prompts_of_a_file_reach_clients(asking: ServerConfig) -> None:
    async with opened_gateway(asking) as opened:
        await opened.gateway.connections.settle()
        drawn = json.loads((await opened.inside.call("kit__draw", {})).result or b"")
        assert drawn["content"][1] == {"type": "image", "data": "UE5H", "mimeType": "image/png"}
        read = await opened.inside.ask("resources/read", params={"uri": "kit+kit://7"})
        assert json.loads(json.loads(read.result or b"")["contents"][0]["text"]) == {"number": 7}
        got = await opened.inside.ask("prompts/get", params={"name": "kit__review", "arguments": {"text": "x"}})
        assert json.loads(got.result or b"")["messages"][0]["content"]["text"] == "Review x"
