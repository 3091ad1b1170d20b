"""`pactgate doctor`: every line says what is so and what to do next, secrets stay secret, nothing takes forever."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from pactgate.cli.doctor import machine
from pactgate.cli.doctor.finding import FindingLevel
from tests.cli.program import Served, demo, run, run_on_terminal, scripted, write_config
from tests.support.children import until


def examine(folder: Path, *words: str, **env: str) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    """The exit code and the findings by topic."""
    done = run(folder, "doctor", "--json", *words, **env)
    assert "Traceback" not in done.stderr
    topics: dict[str, list[dict[str, Any]]] = {}
    for finding in json.loads(done.stdout)["findings"]:
        topics.setdefault(finding["topic"], []).append(finding)
    return done.returncode, topics


def levels(found: list[dict[str, Any]]) -> list[str]:
    return [finding["level"] for finding in found]


def program(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


@contextmanager
def answering(status: int) -> Iterator[int]:
    """An HTTP server that answers everything with one status; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self.do_GET()

        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def test_a_newcomer_without_a_configuration_sees_that_the_demo_works(tmp_path: Path) -> None:
    _, found = examine(tmp_path)
    assert "demo" in found["configuration"][0]["text"]
    assert {"server:almanac", "server:scratchpad", "server:pocket", "server:library"} <= set(found)
    assert levels(found["server:almanac"]) == levels(found["server:scratchpad"]) == ["ok", "ok"]
    assert "2025-11-25" in found["server:almanac"][1]["text"]
    assert "2026-07-28" in found["server:scratchpad"][1]["text"]
    write_config(tmp_path, {"almanac": demo("almanac")}, listen={"port": 0})
    code, found = examine(tmp_path)
    assert code == 0
    assert levels(found["gateway"]) == ["ok"]


def test_the_machine_is_described(tmp_path: Path) -> None:
    write_config(tmp_path, {}, listen={"port": 0})
    _, found = examine(tmp_path)
    told = " ".join(finding["text"] for finding in found["machine"])
    for word in (f"Python {sys.version_info.major}.{sys.version_info.minor}", "pidfd", "/bin/sh", "Landlock", "uvloop"):
        assert word in told


def test_packages_are_compared_with_what_the_package_asks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["msgspec>=0.1", "rich>=999", "not-there-at-all>=1.5", 'not-asked-for>=1; extra == "more"']
    folder = tmp_path / "pactgate-0.1.0.dist-info"
    folder.mkdir()
    lines = "".join(f"Requires-Dist: {line}\n" for line in wanted)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pactgate\nVersion: 0.1.0\n{lines}")
    monkeypatch.syspath_prepend(tmp_path)
    found = {finding.text: finding for finding in machine.examine_machine()}
    failures = [finding for finding in found.values() if finding.level is FindingLevel.FAIL]
    assert len(failures) == 2
    assert "older than 999" in failures[0].text
    assert 'pip install "not-there-at-all>=1.5"' in failures[1].hint
    assert any(text.startswith("packages: msgspec ") for text in found)
    assert not any("not-asked-for" in text for text in found)


def test_a_server_that_can_not_start_says_what_to_install_or_correct(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("no program")
    servers = {
        "node-thing": {"command": "npx", "args": ["-y", "server"], "env": {"PATH": str(tmp_path)}},
        "strange": {"command": "a-program-that-is-missing"},
        "elsewhere": {**demo("almanac"), "cwd": "no-such-folder"},
        "plain": {"command": "./plain.txt", "cwd": "."},
        "gone": {"command": "/no/such/program"},
        "off": {"command": "a-program-that-is-missing", "enabled": False},
        "fine": demo("almanac"),
    }
    write_config(tmp_path, servers, listen={"port": 0})
    code, found = examine(tmp_path)
    assert code == 1
    said = {topic.removeprefix("server:"): lines[0]["text"] + " " + lines[0]["hint"] for topic, lines in found.items()}
    assert "npx is not on the PATH" in said["node-thing"]
    assert "Node.js" in said["node-thing"]
    assert "PATH of its own" in said["node-thing"]
    assert "Install a-program-that-is-missing" in said["strange"]
    assert "no-such-folder does not exist" in said["elsewhere"]
    assert "may not be executed" in said["plain"]
    assert "does not exist" in said["gone"]
    assert (levels(found["server:off"]), levels(found["server:fine"])) == (["ok"], ["ok", "ok"])
    assert {topic: levels(lines) for topic, lines in found.items() if levels(lines) == ["fail"]}.keys() == {
        f"server:{id_}" for id_ in ("node-thing", "strange", "elsewhere", "plain", "gone")
    }


def test_a_server_that_starts_and_does_not_speak_says_how_to_look_closer(tmp_path: Path) -> None:
    quiet = {"command": sys.executable, "args": ["-c", "raise SystemExit('no licence found')"]}
    slow = {**scripted(hang="handshake"), "connectionTimeoutMs": 1000}
    half = scripted(definitions=[{"name": "shapeless"}])
    write_config(tmp_path, {"quiet": quiet, "slow": slow, "half": half}, listen={"port": 0})
    code, found = examine(tmp_path)
    assert code == 1
    assert "no licence found" in found["server:quiet"][1]["text"]
    assert "Run it by hand" in found["server:quiet"][1]["hint"]
    assert "connectionTimeoutMs" in found["server:slow"][1]["hint"]
    assert levels(found["server:half"]) == ["ok", "ok", "warn"]
    assert "shapeless: it has no inputSchema" in found["server:half"][2]["text"]


def test_a_url_is_followed_as_far_as_it_leads(tmp_path: Path) -> None:
    with answering(401) as secured, answering(404) as other:
        servers = {
            "nowhere": {"url": "http://no-such-host.invalid/mcp"},
            "refusing": {"url": f"http://127.0.0.1:{free_port()}/mcp"},
            "secured": {"url": f"http://127.0.0.1:{secured}/mcp"},
            "other": {"url": f"http://127.0.0.1:{other}/mcp"},
            "api": {"baseUrl": f"http://127.0.0.1:{other}", "endpoints": []},
            "dead-api": {"baseUrl": f"http://127.0.0.1:{free_port()}", "endpoints": []},
        }
        write_config(tmp_path, servers, listen={"port": 0})
        code, found = examine(tmp_path)
    assert code == 1
    assert levels(found["server:nowhere"]) == levels(found["server:refusing"]) == ["fail"]
    assert "resolved" in found["server:nowhere"][0]["text"]
    assert "refused" in found["server:refusing"][0]["text"]
    assert levels(found["server:secured"]) == levels(found["server:other"]) == ["ok", "fail"]
    assert "credentials" in found["server:secured"][1]["hint"]
    assert "MCP endpoint" in found["server:other"][1]["hint"]
    assert levels(found["server:api"]) == ["ok", "ok"]
    assert "`baseUrl`" in found["server:dead-api"][0]["hint"]


def test_variables_are_named_and_their_values_never_shown(tmp_path: Path) -> None:
    env = {"A": "${FULL_TOKEN}", "B": "${EMPTY_TOKEN}", "C": "${ABSENT_TOKEN:-fallback}"}
    write_config(tmp_path, {"almanac": {**demo("almanac"), "env": env}}, listen={"port": 0})
    done = run(tmp_path, "doctor", FULL_TOKEN="canary-4711", EMPTY_TOKEN="", SOMETHING_ELSE="7")
    assert "variables that are set: FULL_TOKEN\n" in done.stdout
    assert "OTEL_" not in done.stdout
    assert re.search("warn +the variable EMPTY_TOKEN is set and empty", done.stdout)
    assert "ABSENT_TOKEN is not set: it has a default, or its server is disabled" in done.stdout
    assert "canary-4711" not in done.stdout
    code, found = examine(tmp_path, EMPTY_TOKEN="")
    assert code == 1
    (missing,) = [finding["text"] for finding in found["configuration"] if "FULL_TOKEN" in finding["text"]]
    assert missing.endswith("env.A: The environment variable FULL_TOKEN is not set.")
    assert levels(found["server:almanac"]) == ["fail"]


def test_every_problem_of_a_configuration_is_a_failure_with_its_hint(tmp_path: Path) -> None:
    (tmp_path / "pactgate.json").write_text('{"mcpServers": {"files": {"comand": "npx"}}, "listen": {"port": 70000}}')
    code, found = examine(tmp_path)
    assert code == 1
    assert levels(found["configuration"]) == ["fail", "fail", "fail", "warn"]
    assert all(finding["hint"] for finding in found["configuration"][:3])
    code, found = examine(tmp_path, "--config", "missing.json")
    assert (code, levels(found["configuration"])[0]) == (1, "fail")


@pytest.mark.parametrize(
    ("mode", "token", "is_warned"),
    [(0o644, "canary-4711", True), (0o600, "canary-4711", False), (0o644, "${TOKEN}", False)],
)
def test_secrets_in_a_file_others_may_read_are_a_warning(
    mode: int, token: str, is_warned: bool, tmp_path: Path
) -> None:
    path = write_config(tmp_path, {"almanac": {**demo("almanac"), "env": {"API_TOKEN": token}}}, listen={"port": 0})
    path.chmod(mode)
    _, found = examine(tmp_path, TOKEN="canary-4711")
    assert any("chmod o-r" in finding["hint"] for finding in found["configuration"]) is is_warned


def test_a_file_its_group_may_write_is_a_warning(tmp_path: Path) -> None:
    write_config(tmp_path, {}, listen={"port": 0}).chmod(0o660)
    _, found = examine(tmp_path)
    assert any("chmod g-w" in finding["hint"] for finding in found["configuration"])


def test_a_file_others_may_write_is_a_failure(tmp_path: Path) -> None:
    write_config(tmp_path, {}, listen={"port": 0}).chmod(0o666)
    code, found = examine(tmp_path)
    assert code == 1
    assert any("chmod o-w" in finding["hint"] for finding in found["configuration"])


def test_a_port_is_free_or_has_a_gateway_or_somebody_else(tmp_path: Path) -> None:
    def told(port: int) -> tuple[str, str]:
        write_config(tmp_path, {}, listen={"port": port})
        (finding,) = examine(tmp_path)[1]["gateway"]
        return finding["level"], finding["text"]

    level, text = told(free_port())
    assert (level, "is free" in text) == ("ok", True)
    with answering(404) as port:
        level, text = told(port)
        assert (level, "another program" in text) == ("fail", True)
    gateway_folder = tmp_path / "gateway"
    gateway_folder.mkdir()
    write_config(gateway_folder, {})
    with Served(gateway_folder) as gateway:
        level, text = told(int(gateway.url.rpartition(":")[2]))
        assert (level, "a gateway runs at" in text) == ("ok", True)


def test_an_address_of_another_machine_can_not_be_listened_on(tmp_path: Path) -> None:
    write_config(tmp_path, {}, listen={"host": "192.0.2.1", "port": 7411})
    code, found = examine(tmp_path)
    assert (code, levels(found["gateway"])) == (1, ["fail"])
    assert "127.0.0.1" in found["gateway"][0]["hint"]


def test_programs_that_start_servers_are_asked_for_their_version_once(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    program(tools, "node", "echo v16.20.2")
    program(tools, "npx", "echo 8.19.4")
    program(tools, "uvx", "exit 3")
    path = f"{tools}:{os.environ['PATH']}"
    servers = {"one": {"command": "npx"}, "two": {"command": "npx"}, "three": {"command": "uvx"}}
    write_config(tmp_path, servers, listen={"port": 0})
    _, found = examine(tmp_path, PATH=path)
    told = [(finding["level"], finding["text"]) for finding in found["machine"] if str(tools) in finding["text"]]
    assert [level for level, _ in told] == ["warn", "ok", "warn"]
    assert "v16.20.2" in told[0][1]
    assert "8.19.4" in told[1][1]
    assert "exit code 3" in told[2][1]


async def test_a_program_that_does_not_answer_is_ended_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_PROGRAM_S", 1.0)
    pid_file = tmp_path / "pid"
    path = program(tmp_path, "node", f"sleep 60 & echo $! > {pid_file}; wait")
    finding = await machine._version(str(path), dict(os.environ))
    assert finding.level is FindingLevel.WARN
    assert "longer than" in finding.text
    await until(lambda: is_gone(int(pid_file.read_text())))


def is_gone(pid: int) -> bool:
    """Dead, whether or not whoever inherited it has noticed."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_servers_that_get_in_each_others_way_are_told(tmp_path: Path) -> None:
    write_config(tmp_path, {"mai1": scripted(), "mail": scripted(tools=["x"])}, listen={"port": 0})
    code, found = examine(tmp_path)
    assert code == 0
    assert levels(found["composition"]) == ["warn", "ok"]


def test_on_a_terminal_it_is_in_colour_and_fits(tmp_path: Path) -> None:
    servers = {"almanac": demo("almanac"), "strange": {"command": "a-program-that-is-missing"}}
    write_config(tmp_path, servers, listen={"port": 0})
    code, received = run_on_terminal(tmp_path, "doctor", COLUMNS="60")
    text = received.decode()
    assert code == 1
    assert "\x1b[32mok" in text
    assert "\x1b[31mfail" in text
    assert "1 failure, " in text
    plain = run_on_terminal(tmp_path, "doctor", COLUMNS="60", NO_COLOR="1")[1].decode()
    lines = [line for line in plain.splitlines() if str(tmp_path) not in line and sys.executable not in line]
    assert max(map(len, lines)) <= 60


def test_when_all_is_well_it_says_so(tmp_path: Path) -> None:
    write_config(tmp_path, {"almanac": demo("almanac")}, listen={"port": 0})
    done = run(tmp_path, "doctor")
    assert done.returncode == 0
    assert done.stderr == ""
    # Not every machine that runs the tests has all that is worth having.
    assert re.search(r"\n\n(?:Everything works|0 failures, \d+ warnings?)\.\n$", done.stdout)


def test_a_server_behind_a_proxy_is_looked_for_at_the_proxy(tmp_path: Path) -> None:
    port = free_port()
    write_config(tmp_path, {"crm": {"url": "https://crm.corp.example/mcp", "maxRetries": 0}})
    _, found = examine(tmp_path, HTTPS_PROXY=f"http://user:pass-word@127.0.0.1:{port}")
    texts = [finding["text"] for finding in found["server:crm"]]
    assert texts[0] == f"called through the proxy http://127.0.0.1:{port} (HTTPS_PROXY)"
    assert "can't be reached" in texts[1]
    assert "pass-word" not in json.dumps(found)
