"""Commands find the gateway that runs, and believe nobody else's word about it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pactgate.cli.running_gateways import RunningGateway, announced, running_gateways


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "pactgate"


def gateway(pid: int | None = None) -> RunningGateway:
    return RunningGateway(url="http://127.0.0.1:1", pid=os.getpid() if pid is None else pid, config="/x/pactgate.json")


def test_a_gateway_is_found_while_it_runs(runtime: Path) -> None:
    with announced(gateway()):
        assert running_gateways() == [gateway()]
        assert (runtime.stat().st_mode & 0o777, next(runtime.iterdir()).stat().st_mode & 0o777) == (0o700, 0o600)
    assert running_gateways() == []


def test_the_file_of_a_process_that_was_killed_is_removed(runtime: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    with announced(gateway(ended.pid)):
        assert running_gateways() == []
        assert list(runtime.iterdir()) == []


def test_a_file_that_is_not_ours_says_nothing(runtime: Path) -> None:
    runtime.mkdir(mode=0o700)
    (runtime / "1.json").write_text("no JSON")
    (runtime / "2.json").write_text('{"url": 1}')
    assert running_gateways() == []


def test_a_folder_that_others_may_write_is_not_believed(runtime: Path) -> None:
    with announced(gateway()):
        runtime.chmod(0o777)
        assert running_gateways() == []


def test_a_gateway_serves_also_where_its_file_cant_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "file"))
    with announced(gateway()):
        assert running_gateways() == []
