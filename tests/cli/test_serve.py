"""`pactgate serve` as a newcomer and as an operator meet it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import (
    PROGRAM,
    WAIT_S,
    Served,
    demo,
    environment,
    evil,
    run,
    run_program,
    write_config,
)
from tests.support.eventually import eventually_blocking

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_without_a_configuration_the_demo_is_served_and_the_newcomer_is_told_how_to_use_it(tmp_path: Path) -> None:
    with Served(tmp_path) as gateway:
        url = gateway.url
        gateway.wait_for(r"ok +almanac +3 tools, protocol version 2025-11-25")
        gateway.wait_for(r"ok +scratchpad +3 tools, protocol version 2026-07-28")
        gateway.wait_for(r"ok +library +3 tools, protocol version 2026-07-28")
        snippet = json.loads(gateway.wait_for(r"\n  (\{.*\})\n")[1])
        assert snippet == {"mcpServers": {"pactgate": {"url": f"{url}/mcp"}}}
        offered = gateway.wait_for(r" -m pactgate (call .*)\n")[1].split()
        done = run(tmp_path, *offered)
        assert done.returncode == 0
        assert "Sunday" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_and_everything_it_started(number: signal.Signals, tmp_path: Path) -> None:
    with Served(tmp_path) as gateway:
        gateway.wait_for("ok +almanac")
        gateway.wait_for("ok +scratchpad")
        children = children_of(gateway.process.pid)
        assert len(children) >= 2
        assert gateway.stop(number) == 0
        assert not [pid for pid in children if is_alive(pid)]
        assert gateway.log_lines()[-1]["event"] == "GatewayStopped"


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with Served(tmp_path) as gateway:
        gateway.wait_for("ok +scratchpad")
        with call_under_way(gateway.url, "scratchpad.countdown", {"steps": 100, "intervalMs": 100}):
            gateway.process.send_signal(signal.SIGTERM)
            gateway.wait_for("Stopping")
            assert gateway.stop() == 128 + signal.SIGTERM


@contextmanager
def call_under_way(url: str, name: str, arguments: dict[str, Any]) -> Iterator[None]:
    """A modern call that has reported its first progress and is not over."""
    prefix = "io.modelcontextprotocol/"
    meta = {prefix + "protocolVersion": "2026-07-28", prefix + "clientCapabilities": {}, "progressToken": 1}
    params = {"name": name, "arguments": arguments, "_meta": meta}
    headers = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
    }
    connection = HTTPConnection(url.removeprefix("http://"), timeout=WAIT_S)
    try:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        connection.request("POST", "/mcp", body, headers)
        response = connection.getresponse()
        assert b"notifications/progress" in response.read1(65536)
        yield
        response.close()
    finally:
        connection.close()


@pytest.mark.requirement("S4/F4")
def test_a_bad_configuration_stops_the_start_before_anything_is_spawned_or_bound(tmp_path: Path) -> None:
    marker = tmp_path / "started"
    starts = {"command": sys.executable, "args": ["-c", f"open({str(marker)!r}, 'w')"]}
    write_config(tmp_path, {"good": starts, "BAD": {"comand": "x"}})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        # Whoever tried to bind this port would fail with another exit code, and say so.
        done = run_program(tmp_path, "serve", "--port", str(taken.getsockname()[1]))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("pactgate.json:1:") >= 2
    assert "in use" not in done.stderr
    assert not marker.exists()


@pytest.mark.parametrize("words", [["--port", "70000"], ["--log-level", "loud"], ["--config", "missing.json"]])
def test_a_wrong_flag_is_a_problem_of_the_configuration(words: list[str], tmp_path: Path) -> None:
    done = run(tmp_path, "serve", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_a_taken_port_is_said_with_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_program(tmp_path, "serve", "--port", str(port))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"Can't listen: port {port} is in use" in done.stderr
    assert "asked to" not in done.stderr
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_address_of_somebody_else_can_not_be_listened_on(tmp_path: Path) -> None:
    done = run_program(tmp_path, "serve", "--host", "192.0.2.1")
    assert done.returncode == 1
    assert "Can't listen: 192.0.2.1" in done.stderr


def test_a_server_that_can_not_start_is_named_with_the_reason_and_hides_nobody(tmp_path: Path) -> None:
    write_config(tmp_path, {"almanac": demo("almanac"), "missing": {"command": "no-such-program", "maxRetries": 0}})
    with Served(tmp_path) as gateway:
        gateway.wait_for(r"down +missing .*no-such-program")
        gateway.wait_for("ok +almanac")
        assert gateway.run("call", "date_facts").returncode == 0
        status = gateway.run("status")
        assert status.returncode == 1
        assert "missing: " in status.stdout


def test_a_server_whose_variable_is_not_set_is_down_and_the_others_run(tmp_path: Path) -> None:
    write_config(tmp_path, {"almanac": demo("almanac"), "crm": {"url": "${CRM_URL}"}}, listen={"port": 0})
    with Served(tmp_path) as gateway:
        gateway.wait_for("ok +almanac")
        gateway.wait_for("down +crm +.*CRM_URL is not set")
        assert run(tmp_path, "call", "almanac.date_facts").returncode == 0, (
            "found without --url, on a port nobody named"
        )
        said = run(tmp_path, "call", "crm.anything").stdout
        rows = json.loads(run(tmp_path, "servers", "--json").stdout)
    assert "CRM_URL is not set" in said
    assert {row["serverId"]: row["transport"] for row in rows} == {"almanac": "stdio", "crm": None}
    assert run(tmp_path, "check").returncode == 2


def test_the_log_is_json_lines_on_standard_error_and_says_as_much_as_asked(tmp_path: Path) -> None:
    write_config(tmp_path, {"almanac": demo("almanac")})
    with Served(tmp_path, "--log-level", "debug") as gateway:
        gateway.wait_for("ok +almanac")
        gateway.run("call", "date_facts")
        events = [line["event"] for line in gateway.log_lines()]
    assert {"GatewayStarted", "ServerConnecting", "ServerConnected", "ServerDiscovered", "RequestFinished"} <= set(
        events
    )


RAISES = """
import asyncio, logging, signal
from pactgate.cli.main import main

def fail():
    asyncio.get_running_loop().call_soon_threadsafe(lambda: 1 // 0)
    asyncio.get_running_loop().call_soon_threadsafe(logging.getLogger("asyncio").warning, "the loop\\nis slow")

signal.signal(signal.SIGUSR1, lambda *_: fail())
main()
"""


def test_an_exception_that_nobody_catches_is_one_line_of_the_log(tmp_path: Path) -> None:
    with (tmp_path / "log.jsonl").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", RAISES, "serve", "--port", "0"],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        try:
            assert process.stdout is not None
            while b"/mcp" not in process.stdout.readline():
                pass
            process.send_signal(signal.SIGUSR1)
            eventually_blocking(lambda: "slow" in (tmp_path / "log.jsonl").read_text())
        finally:
            process.terminate()
            process.communicate(timeout=10)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    fault = next(line for line in lines if line["event"] == "InternalFailure")
    assert "ZeroDivisionError" in fault["error"]
    assert fault["where"] == "event loop"
    assert any(line["event"] == "asyncio" for line in lines)


def test_no_secret_of_the_configuration_is_printed_or_logged(tmp_path: Path) -> None:
    secret = "canary-0123456789abcdef"
    tells = "import os, sys; print(os.environ['KEY'], file=sys.stderr); print(os.environ['KEY']); sys.exit(os.environ['KEY'])"
    servers = {"leaky": {"command": sys.executable, "args": ["-c", tells], "env": {"KEY": "${KEY}"}, "maxRetries": 0}}
    write_config(tmp_path, servers, auth={"tokens": {"ops": {"token": "${KEY}"}}})
    with Served(tmp_path, "--log-level", "debug", KEY=secret) as gateway:
        gateway.wait_for("down +leaky")
        assert gateway.run("status", PACTGATE_TOKEN=secret).returncode == 1
        gateway.stop()
        assert secret not in gateway.log_text()
        assert secret not in gateway.printed


def test_beyond_loopback_a_token_is_made_and_needed_and_not_printed_where_no_person_reads(tmp_path: Path) -> None:
    write_config(tmp_path, {"almanac": demo("almanac")})
    with Served(tmp_path, "--host", "0.0.0.0", XDG_RUNTIME_DIR=str(tmp_path)) as gateway:
        file = Path(gateway.wait_for(r"in the file:\n  (\S+)\n")[1])
        assert file.parent.parent == tmp_path / "pactgate"
        assert file.stat().st_mode & 0o777 == 0o600
        token = file.read_text().strip()
        gateway.wait_for("ok +almanac")
        snippet = json.loads(gateway.wait_for(r"\n  (\{.*\})\n")[1])
        assert snippet["mcpServers"]["pactgate"]["headers"] == {"Authorization": "Bearer YOUR-TOKEN"}
        local = gateway.url.replace("0.0.0.0", "127.0.0.1")
        refused = run(tmp_path, "tools", "--url", local)
        assert refused.returncode == 1
        assert "--token" in refused.stderr
        assert run(tmp_path, "tools", "--url", local, "--token", "wrong").returncode == 1
        assert run(tmp_path, "tools", "--url", local, PACTGATE_TOKEN=token).returncode == 0
        assert run(tmp_path, "call", "date_facts", "--url", local, "--token", token).returncode == 0
        assert token not in gateway.log_text()
        assert token not in gateway.printed
        gateway.stop()
        assert not file.exists()


def test_a_token_that_can_be_neither_shown_nor_written_is_an_error(tmp_path: Path) -> None:
    write_config(tmp_path, {})
    done = run_program(tmp_path, "serve", "--port", "0", "--host", "0.0.0.0", XDG_RUNTIME_DIR=str(tmp_path / "missing"))
    assert done.returncode == 1
    assert "auth.tokens" in done.stderr


def test_on_a_terminal_the_token_of_the_run_is_shown_once(tmp_path: Path) -> None:
    write_config(tmp_path, {})
    ours, theirs = pty.openpty()
    command = [*PROGRAM, "serve", "--port", "0", "--host", "0.0.0.0"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL
    )
    os.close(theirs)
    try:
        printed = b""
        while b"Or use it" not in printed:
            printed += os.read(ours, 65536)
    finally:
        process.terminate()
        process.wait(20)
        os.close(ours)
    token = re.search(r"shown only here:\s+(\S+)", printed.decode())
    assert token is not None
    assert f"Bearer {token[1]}" in printed.decode()


def test_whoever_stops_reading_what_it_prints_does_not_stop_it(tmp_path: Path) -> None:
    write_config(tmp_path, {"almanac": demo("almanac")})
    with Served(tmp_path) as gateway:
        url = gateway.url
        gateway.process.stdout.close()  # type: ignore[union-attr]
        assert run(tmp_path, "call", "date_facts", "--url", url).returncode == 0
        assert gateway.process.poll() is None


def test_started_without_standard_streams_it_serves_all_the_same(tmp_path: Path) -> None:
    write_config(tmp_path, {"almanac": demo("almanac")})
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    command = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *PROGRAM, "serve", "--port", str(port)]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(tmp_path))
    try:
        words = ("call", "date_facts", "--url", f"http://127.0.0.1:{port}")
        eventually_blocking(lambda: run(tmp_path, *words).returncode == 0)
        assert process.poll() is None
    finally:
        process.terminate()
        assert process.wait(2 * WAIT_S) == 0


def test_over_stdio_only_messages_go_to_standard_output(tmp_path: Path) -> None:
    messages: list[dict[str, Any]] = [
        INITIALIZE,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "almanac__date_facts", "arguments": {}}},
    ]
    process = subprocess.Popen(
        [*PROGRAM, "serve", "--stdio"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    answers = []
    for message in messages:
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        if "id" in message:
            # A server that connects late is announced by a notification, which may come at any time.
            while "id" not in (received := json.loads(process.stdout.readline())):
                assert received["method"] == "notifications/tools/list_changed"
            answers.append(received)
    rest, log = process.communicate(timeout=2 * WAIT_S)
    assert process.returncode == 0
    assert {json.loads(line)["method"] for line in rest.splitlines()} <= {"notifications/tools/list_changed"}
    assert [answer["id"] for answer in answers] == [1, 2, 3]
    assert len(answers[1]["result"]["tools"]) == 12
    assert all(json.loads(line)["event"] for line in log.splitlines())


@pytest.mark.parametrize(("words", "is_admin"), [((), False), (("--admin",), True)])
def test_over_stdio_a_client_manages_the_gateway_only_where_it_was_said(
    tmp_path: Path, words: tuple[str, ...], is_admin: bool
) -> None:
    """Whoever starts it is the operator; the model behind the client is not."""
    write_config(tmp_path, {})
    ask = {"name": "pactgate.config_get", "arguments": {"path": "limits.maxArraySize"}}
    messages = [
        INITIALIZE,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": ask},
    ]
    done = subprocess.run(
        [*PROGRAM, "serve", "--stdio", *words],
        cwd=tmp_path,
        env=environment(tmp_path),
        input="".join(json.dumps(message) + "\n" for message in messages),
        capture_output=True,
        text=True,
        timeout=2 * WAIT_S,
        check=True,
    )
    answer = next(told for told in map(json.loads, done.stdout.splitlines()) if told.get("id") == 2)
    if is_admin:
        assert answer["result"]["structuredContent"]["value"] == 100
    else:
        assert answer["error"]["data"]["failure_mode"] == "unknown_tool"


def test_the_flag_for_it_means_nothing_over_http(tmp_path: Path) -> None:
    done = run(tmp_path, "serve", "--admin")
    assert done.returncode == 2
    assert "role admin" in done.stderr


def test_over_stdio_a_signal_stops_it_too(tmp_path: Path) -> None:
    write_config(tmp_path, {})
    process = subprocess.Popen(
        [*PROGRAM, "serve", "--stdio"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(INITIALIZE) + "\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 1
    process.send_signal(signal.SIGTERM)
    assert process.wait(2 * WAIT_S) == 0
    process.stdin.close()
    process.stdout.close()


@pytest.mark.parametrize("colour", [True, False])
def test_on_a_terminal_it_is_readable_coloured_and_says_nothing_twice(tmp_path: Path, colour: bool) -> None:
    write_config(tmp_path, {"almanac": demo("almanac"), "evil": evil()}, listen={"port": 0})
    ours, theirs = pty.openpty()
    env = environment(tmp_path) if colour else environment(tmp_path, NO_COLOR="1")
    process = subprocess.Popen([*PROGRAM, "serve"], cwd=tmp_path, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    received = b""
    try:
        while not (b"almanac" in received and re.search(rb"ok.* evil .*\n", received)):
            received += os.read(ours, 65536)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(2 * WAIT_S) == 0
        os.close(ours)
    assert (b"\x1b[32mok" in received) == colour
    if not colour:
        assert b"\x1b" not in received
    assert len(re.findall(rb"almanac +3 tools", received)) == 1
    assert b'"event"' not in received
    assert b"connected, legacy" not in received


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_an_idle_gateway_is_small(tmp_path: Path) -> None:
    with Served(tmp_path) as gateway:
        gateway.wait_for("ok +almanac")
        gateway.wait_for("ok +scratchpad")
        status = Path(f"/proc/{gateway.process.pid}/status").read_text()
        rss_kib = int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0])
        assert rss_kib <= 60 * 1024
