"""The console in a real browser: the demo as a newcomer sees it, a hostile server, a page of another origin, and the bundle itself.

PACTGATE_PICTURES=docs/pictures makes the pictures of the docs again.
"""

from __future__ import annotations

import filecmp
import gzip
import json
import os
import re
import shlex
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

from pactgate.conformance.check import check_capture
from tests.interop.console.server import LONG, MANY, MARKUP
from tests.interop.identity_gateway import RealProvider, start_gateway
from tests.interop.processes import GATEWAY, HERE, PYTHON, ROOT, TOOLS, Program, free_port

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
    "connect_client",
    "kill",
    "server",
    "progress",
    "both_eras",
    "cancel",
    "cancel_legacy",
    "copies",
    "wrong",
    "broken_json",
    "find",
    "open_and_export",
    "bad_filter",
    "captures",
    "settings",
    "disable",
    "paint",
]
MAX_BUNDLE_BYTES = 72 * 1024
MAX_PAINT_MS = 300
MAX_SCRIPT_MS = 16
ROWS = 10_000


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
    exported = tmp_path / "call.json"
    with running([], tmp_path) as (link, origin):
        await_connected(origin, "almanac")
        seen = drive(
            tmp_path,
            origin=origin,
            link=link,
            servers=4,
            victim="almanac",
            steps=steps,
            exported=str(exported),
            **folder,
        )
        for name, text in seen["copies"].items():
            assert said_by(name, text, tmp_path) == "59", (name, text)
    assert seen["servers"] == DEMO
    assert (seen["hash"], seen["cookie"], seen["foreign"]) == ("", "", [])
    assert "weekday" in seen["tried"]
    assert json.loads(seen["entry"])["mcpServers"]["pactgate"]["url"] == f"{origin}/mcp"
    assert seen["turned"]["ms"] < 2000
    assert "SIGKILL" in seen["turned"]["reason"]
    assert any("SIGKILL" in step for step in seen["life"])
    assert "steps: 4" in seen["counted"]
    assert seen["eras"] == ["As a client of 2026-07-28", "As a client of 2025-11-25"]
    assert len(seen["results"]) == 2
    assert seen["results"][0] == seen["results"][1]
    assert "Cancelled" in seen["cancelled"]
    assert "Cancelled" in seen["cancelled_legacy"]
    assert "not executed" in seen["wrong"]
    assert seen["broken_json"] == {"sent": 0, "focused": True}
    assert set(seen["rows"]) == {"scratchpad.countdown"}
    assert "cancelled" in seen["call"]
    assert "call the server" in seen["call"]
    assert seen["sides"] == ["Between client and gateway", "Between gateway and scratchpad"]
    assert [part.split()[0] for part in seen["parts"]] == ["at", "here"]
    assert "countdown" in seen["message"]
    assert check_capture(str(exported)).passed
    assert "Did you mean tool?" in seen["bad_filter"]
    assert "0 of" in seen["replayed"]
    assert "maxArraySize" in seen["refused_setting"]
    assert seen["planned_setting"].startswith("100 → 99")
    assert {"listen.port", "log.level"} <= set(seen["from_command_line"])
    assert "was used" in seen["signed_out"]
    assert seen["paint_ms"] < MAX_PAINT_MS
    assert (seen["pictures"], seen["overflow"], seen["serious"]) == (9 * 4 + 1, [], [])


def said_by(name: str, text: str, folder: Path) -> str:
    """What a copied call prints, run as a person would run it: the number of days in it."""
    if name == "Python":
        command = [PYTHON, "-c", text]
    else:
        words = text if name == "curl" else text.replace("pactgate", shlex.join(GATEWAY), 1)
        command = ["bash", "-c", words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, cwd=folder)
    found = re.search(r"""days["']?: (\d+)|"days":(\d+)""", done.stdout)
    assert found is not None, (name, text, done.stdout, done.stderr)
    return found[1] or found[2]


def test_ten_thousand_calls_scroll_smoothly(tmp_path: Path) -> None:
    need_browser()
    config = configured(tmp_path, rateLimits={"enabled": False})
    with running(["--config", config], tmp_path) as (link, origin):
        await_connected(origin, "odd")
        seen = drive(tmp_path, origin=origin, link=link, count=ROWS, often="odd.nothing", steps=["sign_in", "scroll"])
    assert seen["scrolled"]["rows"] < 100
    assert seen["scrolled"]["blank"] == 0
    assert seen["scrolled"]["script_ms"] < MAX_SCRIPT_MS


def configured(folder: Path, **sections: Any) -> str:
    """The file of a gateway with the odd server."""
    config = folder / "pactgate.json"
    entry = {"command": PYTHON, "args": [str(HERE / "console" / "server.py")], "isolation": "session"}
    config.write_text(json.dumps({"mcpServers": {"odd": entry}, **sections}))
    return str(config)


def test_a_question_is_answered_and_markup_of_a_server_stays_text(tmp_path: Path) -> None:
    need_browser()
    large = {"maxResponseBytes": 4 * len(LONG)}
    config = configured(tmp_path, response=large, limits={"maxUpstreamFrameBytes": 4 * len(LONG)})
    with running(["--config", config], tmp_path) as (link, origin), another_origin(tmp_path) as elsewhere:
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
            logging="odd",
            logged=MARKUP[:40],
            steps=["sign_in", "servers", "ask", "hostile", "logs", "foreign_page"],
        )
        assert servers_of(origin)["odd"]["toolCount"] == MANY + 4
    assert MARKUP[:40] in seen["question"]
    assert "You chose blue." in seen["answered"]
    assert "You chose blue." in seen["answered_legacy"]
    assert MARKUP[:40] in seen["hostile"]
    assert seen["injected"] == {"ran": False, "images": 0, "scripts": 1, "links": 0}
    assert 20_000 < seen["long"] < 21_000, "of a text of 5 MB a part is shown, and more where it is wanted"
    assert seen["responsive_ms"] < 2000
    assert seen["foreign_page"] == {"read": "refused", "write": "refused", "call": "refused", "framed": "blocked"}


def test_a_link_with_a_token_signs_nobody_in_and_whoever_has_it_pastes_it(tmp_path: Path) -> None:
    need_browser()
    token = "of-somebody-else-0123456789"
    config = configured(tmp_path, auth={"tokens": {"ann": {"token": token}}})
    (tmp_path / "pactgate.json").chmod(0o600)
    with running(["--config", config], tmp_path) as (_, origin):
        seen = drive(tmp_path, origin=origin, token=token, steps=["link_with_token"])
    assert "was used or is not of this run" in seen["alert"]


def test_a_person_signs_in_at_the_identity_provider_and_comes_back_to_the_same_screen(tmp_path: Path) -> None:
    need_browser()
    need(TOOLS / "node")
    pictures = os.environ.get("PACTGATE_PICTURES")
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    provider = RealProvider(tmp_path, f"{origin}/mcp")
    login = {"clientId": "console", "clientSecret": "of-the-console"}
    issuer = {"issuer": provider.issuer, "audiences": [f"{origin}/mcp"], "login": login}
    provider.start()
    try:
        gateway = start_gateway(tmp_path, port, {"issuers": [issuer]})
        try:
            seen = drive(
                tmp_path,
                origin=origin,
                tool="files.look",
                steps=["sign_in_at_provider", "link_of_another"],
                **({} if pictures is None else {"pictures": str(ROOT / pictures)}),
            )
        finally:
            gateway.stop()
    finally:
        provider.stop()
    assert seen["button"] == f"Sign in with {provider.issuer.removeprefix('http://')}"
    assert "look" in seen["result"]
    assert seen["came_back"] == "/console/tools/files.look"
    assert seen["cookies"] == ["Strict"], "that of the sign-in has ended with it"
    assert seen["screens"] == ["Now", "Calls", "Tools", "Servers"], "a token makes nobody an administrator"
    assert "not begun in this browser" in seen["refused"]
    assert (seen["pictures"], seen["overflow"], seen["serious"]) == (1, [], [])


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


def test_the_bundle_is_small() -> None:
    assert (
        sum(len(gzip.compress(path.read_bytes(), 9)) for path in STATIC.rglob("*") if path.is_file()) < MAX_BUNDLE_BYTES
    )
