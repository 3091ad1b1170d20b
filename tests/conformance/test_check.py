"""The checker as a function, and as a name of the package."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import pactgate
from pactgate.capture.format import CaptureError
from pactgate.conformance.check import check_capture
from tests.conformance.captures import capture, handshake

GOOD = capture(*handshake())


def test_a_capture_can_be_a_value_a_name_or_a_path(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.write_text(json.dumps(GOOD))
    reports = [check_capture(GOOD), check_capture(str(path)), check_capture(path)]
    assert all(report.passed for report in reports)
    assert [report.source for report in reports] == ["(value)", str(path), str(path)]


def test_the_package_offers_it_without_importing_it() -> None:
    assert pactgate.check_capture is check_capture
    assert "check_capture" in dir(pactgate)
    with pytest.raises(AttributeError):
        _ = pactgate.nothing_of_this_name  # type: ignore[attr-defined]
    script = "import pactgate, sys; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"msgspec", "jsonschema_rs", "pactgate.conformance"} & set(modules)


def test_what_can_not_be_read_is_raised() -> None:
    with pytest.raises(CaptureError):
        check_capture({})
    with pytest.raises(CaptureError):
        check_capture("no/such/file.json")


def test_wrong_choices_are_refused() -> None:
    with pytest.raises(ValueError):
        check_capture(GOOD, era="ancient")
    with pytest.raises(ValueError):
        check_capture(GOOD, fail_on="may")


def test_progress_is_told(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.write_text(json.dumps(GOOD))
    told: list[tuple[int, int | None]] = []
    check_capture(path, on_progress=lambda done, total: told.append((done, total)))
    assert told == [(path.stat().st_size, path.stat().st_size)]


@pytest.mark.requirement("S3/SCOPE")
def test_nothing_is_contacted_and_nothing_is_scored(tmp_path: Path) -> None:
    """A process in which opening a socket, starting a program or writing a file ends everything."""
    path = tmp_path / "session.json"
    path.write_text(json.dumps([GOOD, {**GOOD, "server_label": "other"}]))
    script = f"""
import sys
def refuse(event, arguments):
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if event.startswith(("socket", "subprocess", "os.system", "os.exec", "os.posix_spawn", "urllib", "http")) or writes:
        print("refused", event, arguments); sys.stdout.flush(); import os; os._exit(9)
sys.dont_write_bytecode = True
sys.addaudithook(refuse)
from pactgate.conformance.check import check_capture
from pactgate.conformance.formats import RENDER
report = check_capture({str(path)!r}, rules="all")
texts = [render(report) for render in RENDER.values()]
print(sorted(set(word for text in texts for word in ("score", "grade", "fleet") if word in text)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
