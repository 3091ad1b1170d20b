"""The console in a real browser: the demo as a newcomer sees it, a hostile server, a page of another origin, and the bundle itself.

PACTGATE_PICTURES=docs/pictures makes the pictures of the docs again.
"""

from __future__ import annotations

import filecmp
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import urlopen

import pytest

from tests.interop.console.server import MANY, MARKUP
from tests.interop.processes import GATEWAY, HERE, PYTHON, ROOT, TOOLS, Program

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]

BROWSER = TOOLS / "identity"
BUILDER = TOOLS / "console"
STATIC = ROOT / "src" / "pactgate" / "console" / "static"
JOURNEY_S = 120
DEMO = ["almanac", "library", "pocket", "scratchpad"]
DEMO_STEPS = [
    "sign_in",
    "servers",
    "try_one",
    "kill",
    "progress",
    "cancel",
    "wrong",
    "broken_json",
    "find",
    "bad_filter",
    "disable",
]


def need(folder: Path) -> None:
    if not (folder / ".installed").is_file():
        pytest.skip(f"{folder.relative_to(ROOT)} is not there; `make interop` fetches it")


def need_browser() -> None:
    need(BROWSER)
    if shutil.which("chromium") is None:
        pytest.skip("there is no chromium; install Debian's package of this name")


def link_of(gateway: Program) -> str:
    """The link to sign in, which is in a file because the output of this gateway is no terminal."""
    found: list[str] = []

    def is_told() -> bool:
        found[:] = re.findall(r"is in the file:\s+(\S+\.token)", gateway.said())
        return bool(found)

    gateway.wait_until(is_told, "it says where its link is")
    return Path(found[0]).read_text().strip()


@contextmanager
def running(words: list[str], folder: Path) -> Iterator[tuple[str, str]]:
    """A gateway; its link and its address."""
    gateway = Program([*GATEWAY, "serve", "--port", "0", "--log-level", "error", *words], folder / "gateway.log")
    try:
        link = link_of(gateway)
        yield link, link.partition("/console/")[0]
    finally:
        gateway.stop()


def drive(folder: Path, **given: Any) -> dict[str, Any]:
    """What the browser saw on its way."""
    steps = folder / "steps.json"
    steps.write_text(json.dumps({"packages": str(BROWSER), **given}))
    done = subprocess.run(
        ["node", str(HERE / "console" / "journey.mjs"), str(steps)], capture_output=True, timeout=JOURNEY_S, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    seen: dict[str, Any] = json.loads(done.stdout)
    assert "failed" not in seen, json.dumps(seen)[:3000]
    assert seen["faults"] == seen["violations"] == [], seen
    return seen


def servers_of(origin: str) -> dict[str, dict[str, Any]]:
    with urlopen(f"{origin}/api/servers", timeout=5) as answer:
        return {row["serverId"]: row for row in json.load(answer)["servers"]}


def await_connected(origin: str, server: str) -> None:
    limit = time.monotonic() + 10
    while servers_of(origin).get(server, {}).get("status") != "connected":
        assert time.monotonic() < limit, f"{server} is not connected"


def test_a_newcomer_sees_the_demo_calls_a_tool_and_finds_the_call(tmp_path: Path) -> None:
    need_browser()
    pictures = os.environ.get("PACTGATE_PICTURES")
    steps = [*DEMO_STEPS, "layouts", "sign_out"]
    folder = {} if pictures is None else {"pictures": str(ROOT / pictures)}
    with running([], tmp_path) as (link, origin):
        await_connected(origin, "almanac")
        seen = drive(tmp_path, origin=origin, link=link, servers=4, victim="almanac", steps=steps, **folder)
    assert seen["servers"] == DEMO
    assert (seen["hash"], seen["cookie"], seen["foreign"]) == ("", "", [])
    assert "weekday" in seen["tried"]
    assert seen["turned"]["ms"] < 2000
    assert "SIGKILL" in seen["turned"]["reason"]
    assert "steps: 4" in seen["counted"]
    assert "Cancelled" in seen["cancelled"]
    assert "did not run" in seen["wrong"]
    assert seen["broken_json"] == {"sent": 0, "focused": True}
    assert seen["rows"] == ["scratchpad.countdown"]
    assert "cancelled" in seen["call"]
    assert "dispatch" in seen["call"]
    assert "Did you mean tool?" in seen["bad_filter"]
    assert seen["overflow"] == 0
    assert "was used" in seen["signed_out"]


def test_a_question_is_answered_and_markup_of_a_server_stays_text(tmp_path: Path) -> None:
    need_browser()
    config = tmp_path / "pactgate.json"
    entry = {"command": PYTHON, "args": [str(HERE / "console" / "server.py")], "isolation": "session"}
    config.write_text(json.dumps({"mcpServers": {"odd": entry}}))
    with running(["--config", str(config)], tmp_path) as (link, origin), another_origin(tmp_path) as elsewhere:
        await_connected(origin, "odd")
        seen = drive(
            tmp_path,
            origin=origin,
            link=link,
            servers=1,
            asking="odd.ask",
            answers={"colour": "blue"},
            hostile="odd.hostile",
            elsewhere=elsewhere,
            steps=["sign_in", "servers", "ask", "hostile", "foreign_page"],
        )
        assert servers_of(origin)["odd"]["toolCount"] == MANY + 2
    assert MARKUP[:40] in seen["question"]
    assert "You chose blue." in seen["answered"]
    assert MARKUP[:40] in seen["hostile"]
    assert seen["injected"] == {"ran": False, "images": 0, "scripts": 1, "links": 0}
    assert seen["responsive_ms"] < 2000
    assert seen["foreign_page"] == {"read": "refused", "write": "refused", "call": "refused", "framed": "blocked"}


@contextmanager
def another_origin(folder: Path) -> Iterator[str]:
    """A page at another port of this host, which browsers call the same site."""
    (folder / "page").mkdir()
    (folder / "page" / "index.html").write_text("<!doctype html><title>elsewhere</title>")

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(folder / "page"))

        def log_message(self, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_committed_bundle_is_what_the_sources_make(tmp_path: Path) -> None:
    need(BUILDER)
    built = tmp_path / "static"
    done = subprocess.run(
        ["bash", str(ROOT / "scripts" / "build_console.sh"), str(built)], capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    names = sorted(str(path.relative_to(built)) for path in built.rglob("*") if path.is_file())
    assert names == sorted(str(path.relative_to(STATIC)) for path in STATIC.rglob("*") if path.is_file())
    assert filecmp.cmpfiles(built, STATIC, names, shallow=False)[0] == names
