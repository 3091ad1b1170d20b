"""Imports follow the plan of `.importlinter`, which lets no frontend reach a server except through the kernel."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.requirement("S4/SIB-4")
def test_the_import_contracts_hold() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-logo"], cwd=ROOT, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


FOR_THE_OPERATOR = {
    "catalog/connections.py",  # which owns it
    "catalog/name_resolution.py",  # whether a name that a caller does not have exists
    "catalog/surfaces.py",  # which filters it
    "cli/connect_once.py",
    "cli/learn.py",
    "pipeline/housekeeping.py",  # conflicts between servers
    "pipeline/management.py",  # tools of administrators
    "telemetry/snapshot.py",  # filtered by `inbound/admin.py`
    "testing.py",
}


def test_no_caller_is_answered_from_the_unfiltered_catalog() -> None:
    """A path that forgets to ask what a caller may see has to name the catalog that says so in its name."""
    package = ROOT / "src" / "pactgate"
    users = {
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        if re.search(r"\.(?:unfiltered|everything)\b", file.read_text())
    }
    assert users == FOR_THE_OPERATOR
