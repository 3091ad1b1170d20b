"""A file of tools as an MCP server: both eras, many calls at once, progress, cancelling, and a wire that is nobody else's."""

from __future__ import annotations

import pytest

from tests.runner.driving import Driven, error, modern, write_tools

KIT = """
came = threading.Event()
ended = threading.Event()

@tool(**query)
def wait_for_other() -> bool:
    "Wait for the other call."
    return came.wait(5)

@tool(**query)
def other() -> None:
    "Let the first one go on."
    came.set()

@tool(**query)
def count(call: Call, to: int = 3) -> int:
    "Count aloud."
    for number in range(to):
        call.progress(number + 1, to, f"{number + 1} of {to}")
    return to

@tool(**query)
async def count_async(call: Call, to: int = 2) -> int:
    "Count aloud."
    for number in range(to):
        await call.progress(number + 1)
    return to

@tool(**query)
async def sleep(call: Call) -> None:
    "Sleep until cancelled."
    try:
        call.progress(1)
        await asyncio.sleep(60)
    finally:
        ended.set()

@tool(**query)
def sleep_in_a_thread(call: Call) -> None:
    "Sleep until cancelled."
    call.progress(1)
    if call.wait(60) and call.is_cancelled:
        ended.set()

@tool(**query)
def has_ended() -> bool:
    "Whether a sleeper has noticed."
    return ended.wait(5)

@tool(category="execution", idempotent=False, effects=["process"])
def shout() -> str:
    "Write wherever a tool can write, and read what it can."
    print("shouted")
    os.write(1, b"louder\\n")
    subprocess.run(["/bin/echo", "loudest"], check=True)
    return sys.stdin.read()
"""


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    with Driven(write_tools(tmp_path_factory.mktemp("kit"), KIT)) as driven:
        yield driven


def test_calls_run_side_by_side(kit: Driven) -> None:
    first = kit.begin("wait_for_other")
    second = kit.begin("other")
    assert kit.answer(second)["result"]["isError"] is False
    assert kit.answer(first)["result"]["structuredContent"] == {"result": True}


def test_progress_is_told_from_threads_and_from_the_loop(kit: Driven) -> None:
    kit.told.clear()
    assert kit.call("count")["structuredContent"] == {"result": 3}
    assert [note["params"] for note in kit.told][-1] == {
        "progressToken": "count",
        "progress": 3,
        "total": 3,
        "message": "3 of 3",
    }
    kit.told.clear()
    kit.call("count_async")
    assert [note["params"] for note in kit.told] == [
        {"progressToken": "count_async", "progress": 1},
        {"progressToken": "count_async", "progress": 2},
    ]


@pytest.mark.parametrize("sleeper", ["sleep", "sleep_in_a_thread"])
def test_a_cancelled_call_ends_and_is_never_answered(kit: Driven, sleeper: str) -> None:
    kit.told.clear()
    identity = kit.begin(sleeper)
    kit.hear("notifications/progress")
    kit.cancel(identity)
    assert kit.call("has_ended")["structuredContent"] == {"result": True}
    assert identity not in kit.answers


def test_what_tools_print_is_not_on_the_wire_and_they_find_nothing_to_read(kit: Driven) -> None:
    assert kit.call("shout")["structuredContent"] == {"result": ""}


def test_unknown_tools_and_methods_are_refused_by_name(kit: Driven) -> None:
    assert "wait_for_other" in kit.ask("tools/call", {"name": "nothing"})["error"]["message"]
    assert kit.ask("completion/complete")["error"]["code"] == -32601
    assert kit.ask("ping")["result"] == {}
    assert error(kit.call("count", to="many"))["code"] == "INVALID_INPUT"


def test_a_modern_client_is_served_without_a_handshake(kit: Driven) -> None:
    about = kit.ask("server/discover", modern())["result"]
    assert about["supportedVersions"] == ["2026-07-28"]
    assert about["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "kit"
    listed = kit.ask("tools/list", modern())["result"]
    assert (listed["resultType"], listed["cacheScope"]) == ("complete", "private")
    called = kit.ask("tools/call", modern(name="count", arguments={"to": 1}))["result"]
    assert (called["resultType"], called["structuredContent"]) == ("complete", {"result": 1})
    assert kit.ask("server/discover", {"_meta": {}})["error"]["code"] == -32602


def test_a_legacy_client_opens_with_a_handshake(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with Driven(write_tools(tmp_path, KIT), is_legacy=False) as driven:
        assert "error" in driven.ask("tools/list")
        driven.send("not a message")
        assert driven.read()["error"]["code"] == -32600
        old = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        assert driven.ask("initialize", old)["result"]["protocolVersion"] == "2024-11-05"
        assert len(driven.ask("tools/list")["result"]["tools"]) == 8
    assert driven.code == 0


def test_a_line_too_large_for_any_message_is_kept_out_of_the_loop(tmp_path) -> None:  # type: ignore[no-untyped-def]
    body = '@tool(**query)\ndef big() -> str:\n    "Return more than may be sent."\n    return "x" * 9_000_000\n'
    with Driven(write_tools(tmp_path, body)) as driven:
        failed = error(driven.call("big"))
    assert failed["code"] == "OPERATION_FAILED"
    assert "can be sent" in failed["message"]
