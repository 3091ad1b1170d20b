"""`pactgate audit show` for people: filters, formats, new records as they come, and what was refused at the door."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import signal
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import pytest

from pactgate.audit.audit_log import REJECTED_BURST
from pactgate.cli.audit import RecordFilter, safe_cell
from pactgate.cli.logs import earliest_of
from tests.cli.program import PROGRAM, Served, demo, environment, heed_interrupts, run, write_config
from tests.support.eventually import eventually_blocking
from tests.support.http_get import status_of

PIPE_BYTES = 4096
ADMIN = "admin-token-0123456789"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("audit-show")
    auth = {"anonymous": False, "tokens": {"ops": {"token": ADMIN}, "app": {"token": "app-token-0123456789"}}}
    write_config(folder, {"pad": demo("scratchpad")}, auth=auth, audit={"file": "audit.jsonl"})
    with Served(folder) as gateway:
        gateway.wait_for("ok    pad")
        gateway.run("call", "pad.note_list", "--token", ADMIN)
        gateway.run("call", "pad.note_list", "--token", "app-token-0123456789")
        gateway.run("call", "pad.nothing", "--token", ADMIN)
        yield gateway


def shown(served: Served, *words: str) -> list[dict[str, Any]]:
    done = run(served.folder, "audit", "show", "-n", "1000", "--format", "json", *words)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_records_are_chosen_by_client_tool_failure_and_time(served: Served) -> None:
    assert {record["subject"] for record in shown(served, "--caller", "ops")} == {"ops"}
    assert [record["tool"] for record in shown(served, "--tool", "pad.*", "--caller", "app")] == ["pad.note_list"]
    assert [record["outcome"] for record in shown(served, "--failed", "--caller", "ops")] == ["unknown_tool"]
    assert len(shown(served, "--since", "1h")) == len(shown(served))
    assert run(served.folder, "audit", "show", "--since", "soon").returncode == 2


def test_records_of_before_the_time_are_left_out(served: Served) -> None:
    times = sorted(record["time"] for record in shown(served))
    kept = RecordFilter(earliest=times[1])
    assert [time for time in times if kept.matches({"time": time})] == times[1:]
    assert earliest_of("1h") < times[0] < earliest_of("0s") + "Z"
    assert earliest_of("999999d") == ""


def test_csv_is_for_spreadsheets_and_no_cell_is_a_formula(served: Served) -> None:
    done = run(served.folder, "audit", "show", "--format", "csv", "--caller", "ops")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(row["tool"], row["outcome"]) for row in rows] == [("pad.note_list", "ok"), ("", "unknown_tool")]
    assert [safe_cell(text) for text in ("=1+1", "@x", None, 3)] == ["'=1+1", "'@x", "", "3"]


def test_a_refused_request_is_recorded_with_its_address_and_path(served: Served) -> None:
    assert status_of(f"{served.url}/api/status") == 401
    assert status_of(f"{served.url}/mcp", origin="https://evil.example") == 403
    assert status_of(f"{served.url}/health", host="evil.example") == 421
    wanted = {(401, "GET /api/status"), (403, "GET /mcp"), (421, "GET /health")}

    def rejected() -> set[tuple[int, str]]:
        found = [record for record in shown(served, "--failed") if record["kind"] == "rejected"]
        assert {record["peer"] for record in found} <= {"127.0.0.1"}
        return {(record["status"], record["request"]) for record in found}

    eventually_blocking(lambda: wanted <= rejected())
    assert run(served.folder, "audit", "verify").returncode == 0


def test_a_flood_of_refused_requests_is_counted_and_does_not_fill_the_log(served: Served) -> None:
    count = int(REJECTED_BURST) + 50
    for _ in range(count):
        assert status_of(f"{served.url}/mcp", origin="https://evil.example") == 403
    assert len([one for one in shown(served) if one["kind"] == "rejected"]) < count


@contextmanager
def following(served: Served, *words: str) -> Iterator[IO[bytes]]:
    """What `audit show -f` writes, through a pipe of one page."""
    follower = subprocess.Popen(
        [*PROGRAM, "audit", "show", "-f", "--format", "json", "--caller", "app", *words],
        cwd=served.folder,
        env=environment(served.folder),
        stdout=subprocess.PIPE,
        preexec_fn=heed_interrupts,
        pipesize=PIPE_BYTES,
    )
    assert follower.stdout is not None
    try:
        yield follower.stdout
        follower.send_signal(signal.SIGINT)
        assert follower.wait(5) in (0, 130)
    finally:
        follower.kill()
        follower.wait()
        follower.stdout.close()


def waiting_bytes(pipe: IO[bytes]) -> int:
    (count,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
    return int(count)


def test_new_records_are_shown_as_they_come(served: Served) -> None:
    with following(served, "-n", "1") as shown:
        shown.readline()
        served.run("call", "pad.fresh", "--token", "app-token-0123456789")
        assert json.loads(shown.readline())["requested"] == "pad.fresh"


def test_a_record_that_is_written_while_the_last_ones_are_shown_is_shown_too(served: Served) -> None:
    for _ in range(10):
        served.run("call", "pad.filler", "--token", "app-token-0123456789")
    with following(served) as shown:
        eventually_blocking(lambda: waiting_bytes(shown) > PIPE_BYTES // 2)  # then it waits until more is read
        served.run("call", "pad.meanwhile", "--token", "app-token-0123456789")
        while json.loads(shown.readline()).get("requested") != "pad.meanwhile":
            pass
        assert waiting_bytes(shown) == 0, "shown once"
