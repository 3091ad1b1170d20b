"""Installs the peers into .tools/peers: a virtual environment for each Python peer, one folder for those from npm.

Versions and hashes come from the committed files in `pins`; an installation stays while its pins do not change. Each step has a
time limit. A failure carries the last output of the installer.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.peers.kinds import INSTALLED, PINS

_LIMIT_S: Final = 600
_STAMP: Final = ".installed"
_LAST_OUTPUT_CHARS: Final = 600


class InstallError(Exception):
    """A peer could not be installed; the message has the last output of the installer."""


def install(environment: str, say: Callable[[str], None]) -> None:
    """Install the environment unless it is up to date. Raises InstallError."""
    folder = INSTALLED / environment
    pins = PINS / "node" / "package-lock.json" if environment == "node" else PINS / f"{environment}.txt"
    wanted = hashlib.sha256(pins.read_bytes()).hexdigest()
    stamp = folder / _STAMP
    if stamp.exists() and stamp.read_text() == wanted:
        return
    say(f"installing {environment} into {folder} (once) ...")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if environment == "node":
        _install_node(folder)
    else:
        _install_python(folder, pins)
    stamp.write_text(wanted)


def _install_python(folder: Path, pins: Path) -> None:
    _run([sys.executable, "-m", "venv", str(folder)])
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    _run([*pip, "install", "--require-hashes", "--requirement", str(pins)])


def _install_node(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise InstallError("npm is not installed")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PINS / "node" / name, folder / name)
    _run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder)


def _run(command: list[str], cwd: Path | None = None) -> None:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    except subprocess.TimeoutExpired as late:
        raise InstallError(f"not done after {_LIMIT_S} s: {' '.join(command[:4])}") from late
    except OSError as problem:
        raise InstallError(str(problem)) from problem
    if done.returncode:
        raise InstallError((done.stderr or done.stdout)[-_LAST_OUTPUT_CHARS:].strip())
