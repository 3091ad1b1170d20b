"""What the gateway records of itself."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from pactgate import check_capture
from pactgate.app import build
from pactgate.capture.recorders import GatewayRecorders
from pactgate.config.load import load
from pactgate.config.sections.capture import Capture
from pactgate.core.events import CaptureEnded, CaptureFailed, Event

SERVER = Path(__file__).parent.parent / "support" / "stdio_upstream.py"
CANARY = "canary-0123456789"


def written(folder: Path, **capture: Any) -> Path:
    config = {
        "mcpServers": {
            "one": {
                "command": sys.executable,
                "args": [str(SERVER), json.dumps({"era": "dual"})],
                "env": {"SECRET_TOKEN": "${CANARY}"},
            }
        },
        "listen": {"port": 0},
        "capture": {"dir": "captures", **capture},
    }
    path = folder / "pactgate.json"
    path.write_text(json.dumps(config))
    path.chmod(0o600)
    return path


async def run(folder: Path, events: list[Event], **capture: Any) -> list[dict[str, Any]]:
    """Two clients, one of each era, call one tool each; what was recorded."""
    gateway = build(load(written(folder, **capture), environ={**os.environ, "CANARY": CANARY}), events.append)
    await gateway.start()
    try:
        address = await gateway.serve_http()
        for mode in ("legacy", "2026-07-28"):
            async with asyncio.timeout(10), Client(f"{address}/mcp", mode=mode) as client:
                await client.list_tools()
                await client.call_tool("one__echo", {"say": CANARY})
    finally:
        await gateway.stop()
    folder = folder / "captures"
    assert [file.name for file in folder.iterdir() if file.suffix != ".json"] == []
    return [json.loads(file.read_text()) for file in sorted(folder.iterdir())]


async def test_both_legs_are_recorded_without_secrets_and_no_rule_finds_fault(tmp_path: Path) -> None:
    events: list[Event] = []
    captures = await run(tmp_path, events)
    assert sorted((each["leg"], each["era"]) for each in captures) == [
        ("callers", "legacy"),
        ("callers", "modern"),
        ("servers", "modern"),
    ]
    texts = [file.read_text() for file in (tmp_path / "captures").iterdir()]
    assert not any(CANARY in text for text in texts)
    assert any("***" in text for text in texts)
    for file in (tmp_path / "captures").iterdir():
        report = check_capture(file, rules="all", fail_on="should")
        assert [result.message for _, result in report.failures()] == []
        assert file.stat().st_mode & 0o777 == 0o600
    await asyncio.sleep(0)
    assert sum(isinstance(event, CaptureEnded) for event in events) == 3


@pytest.mark.parametrize("leg", ["callers", "servers"])
async def test_one_leg_alone_can_be_recorded(tmp_path: Path, leg: str) -> None:
    assert {each["leg"] for each in await run(tmp_path, [], legs=leg)} == {leg}


async def test_without_a_folder_there_are_no_taps() -> None:
    taps = GatewayRecorders(Capture(), (), lambda _: None, "x")
    assert [taps.server("a", "stdio"), taps.http_callers(), taps.stdio_caller()] == [None, None, None]
    await taps.close()


async def test_a_folder_that_can_not_be_made_is_said_and_nothing_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    events: list[Event] = []
    taps = GatewayRecorders(Capture(dir=str(tmp_path / "file" / "captures")), (), events.append, "x")
    assert taps.server("a", "stdio") is None
    assert taps.http_callers() is None
    assert [type(event) for event in events] == [CaptureFailed]
    await taps.close()


async def test_a_secret_of_a_new_configuration_is_not_written_either(tmp_path: Path) -> None:
    taps = GatewayRecorders(Capture(dir=str(tmp_path / "c")), (), lambda _: None, "x")
    tap = taps.server("a", "stdio")
    assert tap is not None
    taps.know([CANARY])
    tap.passed(json.dumps({"method": CANARY}).encode(), from_client=True)
    await taps.close()
    (file,) = (tmp_path / "c").iterdir()
    assert CANARY not in file.read_text()


async def test_a_full_disk_costs_the_recording_and_no_call(tmp_path: Path) -> None:
    written(tmp_path)
    limit = 2000
    script = (
        "import asyncio, resource, signal, sys, json\n"
        "from pathlib import Path\nfrom pactgate import Gateway\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "seen = []\n"
        "async def main():\n"
        "    async with Gateway.open(sys.argv[1], lambda e: seen.append(type(e).__name__)) as gateway:\n"
        "        await gateway.discover()\n"
        f"        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "        print(json.dumps([(await gateway.invoke('one.echo', {'x': 'y' * 500}))['success'] for _ in range(20)]))\n"
        "asyncio.run(main())\n"
        "print(seen.count('CaptureFailed'))\n"
    )
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", script, str(tmp_path / "pactgate.json")],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        # Without PYTHONDONTWRITEBYTECODE the cache of some module would be cut short too, for every later run.
        env={**os.environ, "CANARY": CANARY, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    outcomes, failures = done.stdout.splitlines()
    assert json.loads(outcomes) == [True] * 20, done.stderr
    assert int(failures) == 1


async def test_what_a_killed_gateway_leaves_is_readable_and_adopted_by_the_next(tmp_path: Path) -> None:
    path, captures = written(tmp_path), tmp_path / "captures"
    await asyncio.to_thread(_kill_while_it_records, path, captures)
    (part,) = captures.glob("*.part")
    before = _exchanges(part)
    taps = GatewayRecorders(Capture(dir=str(captures)), (), lambda _: None, "x")
    taps.server("a", "stdio")
    await taps.close()
    (file,) = captures.iterdir()
    assert file.suffix == ".json"
    assert _exchanges(file) == before


def _kill_while_it_records(path: Path, captures: Path) -> None:
    words = [sys.executable, "-m", "pactgate", "serve", "--config", str(path), "--port", "0"]
    environ = {**os.environ, "CANARY": CANARY}
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ) as running:
        _until(lambda: any(len(_exchanges(part)) > 1 for part in captures.glob("*.part")))
        running.send_signal(signal.SIGKILL)


def _exchanges(file: Path) -> list[Any]:
    exchanges: list[Any] = json.loads(file.read_text())["exchanges"]
    return exchanges


def _until(condition: Any) -> None:
    tick = threading.Event()
    for _ in range(200):
        if condition():
            return
        tick.wait(0.05)
    raise AssertionError("not in time")
