"""What both demo servers do with lines that are no good, and how quickly they are there."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from pactgate.demo.stdio_server import MAX_LINE_BYTES
from tests.demo.child import WAIT_S, Child, modern

SERVERS = ("almanac", "scratchpad")


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"not json", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"n":NaN}}', -32700),
        (b"\xff\xfe", -32700),
        (b'{"params":' + b"[" * 100_000, None),
        (b"[]", -32600),
        (b"5", -32600),
        (b'{"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":[]}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800","params":{}}', None),
    ],
)
def test_a_bad_line_is_refused_and_the_next_good_one_works(name: str, line: bytes, code: int | None) -> None:
    with Child(name) as child:
        child.write(line)
        refused = child.read()["error"]["code"]
        assert code is None or refused == code
        method = "ping" if name == "almanac" else "server/discover"
        assert "result" in child.ask(method, modern())


@pytest.mark.parametrize(
    "line", [b"", b"   ", b'{"jsonrpc":"2.0","id":9,"result":{}}', b'{"jsonrpc":"2.0","method":"x"}']
)
def test_blank_lines_answers_and_notifications_are_met_with_silence(line: bytes) -> None:
    with Child("almanac") as child:
        child.write(line)
        assert child.ask("ping", {})["result"] == {}


def test_a_line_beyond_the_bound_is_refused_and_ends_the_server() -> None:
    with Child("almanac") as child:
        child.write(b"x" * MAX_LINE_BYTES)
        assert child.read()["error"]["code"] == -32600
        assert child.process.wait(WAIT_S) == 0


@pytest.mark.parametrize("name", SERVERS)
def test_a_client_that_stops_reading_is_no_reason_for_a_traceback(name: str) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", f"pactgate.demo.{name}"]
    text = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    done = subprocess.run(command, input=text, stdout=write_end, stderr=subprocess.PIPE, timeout=WAIT_S, check=False)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("name", SERVERS)
def test_the_server_imports_nothing_of_ours_but_the_revision_table_and_nothing_heavy(name: str) -> None:
    script = f"import pactgate.demo.{name}, sys; print(*sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    ours = [module for module in modules if module.startswith("pactgate.") and not module.startswith("pactgate.demo")]
    assert ours == ["pactgate.protocol", "pactgate.protocol.versions"]
    assert not {"asyncio", "click", "subprocess", "http.client"} & set(modules)


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.timing
def test_the_first_answer_comes_at_once(name: str) -> None:
    def first_answer_s() -> float:
        began = time.perf_counter()
        with Child(name) as child:
            child.ask("nothing", modern())
            return time.perf_counter() - began

    # The best of several: one slow start says something about the machine, not about the server.
    assert min(first_answer_s() for _ in range(5)) < 0.2
