"""`pactgate record` and `pactgate replay` as people type them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from pactgate.cli.record import label_of
from tests.cli.program import PROGRAM, run

SERVER = Path(__file__).parent.parent / "support" / "stdio_upstream.py"
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
TALK: list[dict[str, Any]] = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "echo", "arguments": {"a": 1}}},
]


def converse(talk: list[Any], *words: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
    sent = "".join(json.dumps(message) + "\n" for message in talk)
    return subprocess.run(
        [*PROGRAM, *map(str, words)], input=sent, capture_output=True, text=True, timeout=20, check=False, **more
    )


def server(**options: Any) -> list[str]:
    return [sys.executable, str(SERVER), json.dumps(options)]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "session.json"
    done = converse(TALK, "record", "-o", path, "--", *server())
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2, 3]
    assert re.search(rf"4 requests and notifications .*{re.escape(str(path))}", done.stderr)
    return path


def test_a_recorded_session_is_judged_in_the_order_in_which_things_passed(capture: Path) -> None:
    done = run(capture.parent, "compliance", "invariants", "--capture", str(capture), "--format", "json")
    failed = [each["id"] for each in json.loads(done.stdout)["sessions"][0]["results"] if each["status"] == "fail"]
    assert failed == ["INV-002"]  # this client sends everything at once and waits for no answer


def test_a_file_nobody_named_is_never_overwritten(tmp_path: Path) -> None:
    for _ in range(2):
        converse(TALK, "record", "--", *server(), cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["session-2.json", "session.json"]


@pytest.mark.parametrize(
    "words", [["record"], ["record", "--url", "http://x/", "--", "y"], ["record", "--url", "nonsense"]]
)
def test_a_wrong_invocation_is_said(tmp_path: Path, words: list[str]) -> None:
    done = run(tmp_path, *words)
    assert done.returncode == 2
    assert "error:" in done.stderr


@pytest.mark.parametrize(
    ("command", "label"),
    [
        (["/usr/bin/my-server", "--token", "x"], "stdio://my-server"),
        (["npx", "-y", "@a/b", "/data"], "stdio://@a/b"),
        (["env", "KEY=secret", "node", "/x/node_modules/@a/b/dist/index.js"], "stdio://@a/b"),
        (["/x/node_modules/.bin/mcp-server-memory"], "stdio://mcp-server-memory"),
        (["python", "-m", "my.module"], "stdio://my.module"),
        (["python"], "stdio://python"),
    ],
)
def test_a_server_is_called_by_its_program_and_never_by_its_options(command: list[str], label: str) -> None:
    assert label_of(command) == label


# Replay.


def test_a_capture_serves_as_the_server_it_was_made_of(capture: Path) -> None:
    again = [{**message, "id": f"x{message['id']}"} if "id" in message else message for message in TALK]
    unknown = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "y"}}
    done = converse([*again, unknown], "replay", capture)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    recorded = [each["response"] for each in json.loads(capture.read_text())["exchanges"] if "response" in each]
    assert [answer["id"] for answer in answers] == ["x1", "x2", "x3", 9]
    assert [answer["result"] for answer in answers[:3]] == [answer["result"] for answer in recorded]
    assert answers[3]["error"]["code"] == -32602
    assert "3 recorded responses" in done.stderr
    assert done.returncode == 0


def test_a_capture_serves_over_http(capture: Path) -> None:
    words = [*PROGRAM, "replay", str(capture), "--port", "0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        running.stderr.readline()
        url = running.stderr.readline().split()[-1]
        opened = _post(url, TALK[0])
        assert opened.headers["Mcp-Session-Id"]
        assert json.loads(opened.read())["result"]["protocolVersion"] == "2025-11-25"
        assert _post(url, TALK[1]).status == 202
        assert json.loads(_post(url, TALK[2]).read())["id"] == 2
        running.send_signal(signal.SIGINT)
        assert running.wait(5) == 0


def _post(url: str, message: Any) -> Any:
    request = urllib.request.Request(url, json.dumps(message).encode(), {"Content-Type": "application/json"})
    return urllib.request.urlopen(request, timeout=5)


def test_against_the_same_server_nothing_differs_and_against_another_every_place_is_named(capture: Path) -> None:
    same = run(capture.parent, "replay", str(capture), "--against", "--", *server())
    assert (same.returncode, same.stdout.split()[:4]) == (0, ["SAME:", "0", "of", "3"])
    other = run(capture.parent, "replay", str(capture), "--against", "--json", "--", *server(tools=["extra"]))
    assert other.returncode == 1
    report = json.loads(other.stdout)
    assert not report["same"]
    differing = [each for each in report["requests"] if not each["same"]]
    assert [(each["method"], each["differences"][0]["pointer"]) for each in differing] == [
        ("tools/list", "/result/tools/extra")
    ]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--against"], 2),
        (["http://127.0.0.1:1/"], 2),
        (["--against", "--port", "1", "http://127.0.0.1:1/"], 2),
        (["--against", "--header", "nonsense", "http://127.0.0.1:1/"], 2),
        (["--session", "2"], 2),
        (["--against", "http://127.0.0.1:1/mcp"], 1),
    ],
)
def test_what_can_not_be_played_is_said(capture: Path, words: list[str], code: int) -> None:
    done = run(capture.parent, "replay", str(capture), *words)
    assert done.returncode == code, done.stderr
    assert "error:" in done.stderr


def test_a_file_that_is_no_capture_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[]")
    assert run(tmp_path, "replay", "x.json").returncode == 2
    (tmp_path / "x.json").write_text("nonsense")
    assert run(tmp_path, "replay", "x.json").returncode == 1


# Live.


def test_a_live_server_is_judged_and_its_capture_kept_on_request(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    done = run(tmp_path, "compliance", "invariants", "--live", "-o", str(kept), "--format", "json", "--", *server())
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["passed"]
    assert str(kept) in done.stderr
    assert all(session["exchanges"] for session in json.loads(kept.read_text()))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--live"], 2),
        (["--live", "--capture", "x.json", "--", "y"], 2),
        ([], 2),
        (["--capture", "x.json", "--", "y"], 2),
        (["--live", "--", "no-such-program"], 1),
    ],
)
def test_what_can_not_be_judged_is_said(tmp_path: Path, words: list[str], code: int) -> None:
    done = run(tmp_path, "compliance", "invariants", *words)
    assert done.returncode == code
    assert "error:" in done.stderr
