"""`python -m bench gateways`: plays the gateway profile against other people's gateways, and this one; keeps scores and findings.

pip and npm install them once into .tools/peers, in the versions of bench/peers/pins; one that can't be installed or started is reported
and skipped. The results stand in docs/gateways, the recordings in .tools/profile; `make docs` writes the page. A run takes at most
three minutes for each. Exit code 0 when all were played, 1 otherwise.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from bench.gateways.kinds import GATEWAYS, ScoredGateway
from bench.peers.install import InstallError, install
from bench.peers.kinds import INSTALLED, ROOT

RESULTS: Final = ROOT / "docs" / "gateways"
RECORDINGS: Final = ROOT / ".tools" / "profile"
_LIMIT_S: Final = 300.0
_END_S: Final = 10.0
_SHOWN_CHARS: Final = 240
_EVIDENCE: Final = 6


def programs(gateway: ScoredGateway) -> Path:
    """Where its programs are installed."""
    if gateway.environment == "node":
        return INSTALLED / "node" / "node_modules" / ".bin"
    return INSTALLED / gateway.environment / "bin"


def version(gateway: ScoredGateway) -> str:
    """The exact version of its package."""
    registry, package = gateway.package.split(":")
    if registry == "npm":
        about = INSTALLED / "node" / "node_modules" / package / "package.json"
        return str(json.loads(about.read_text(encoding="utf-8"))["version"])
    if registry == "system":
        said = subprocess.run([package, "-v"], capture_output=True, text=True, check=True)
        return (said.stdout + said.stderr).rsplit("/", 1)[-1].split()[0]
    python = programs(gateway) / "python" if gateway.environment else Path(sys.executable)
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def score(gateway: ScoredGateway) -> dict[str, Any]:
    """Play the profile; scores and findings. Raises RuntimeError when nothing could be played."""
    RECORDINGS.mkdir(parents=True, exist_ok=True)
    kept = ["--format", "json", "--output", str(RECORDINGS / f"{gateway.name}.json")]
    path = os.pathsep.join([str(programs(gateway)), str(Path(sys.executable).parent), os.environ["PATH"]])
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pactgate-scores-") as folder:  # some write a database where they start
        words = ["bash", "-c", f'{gateway.command} "$@"', "-", *kept]
        code, printed, said = _ended(words, Path(folder), {**os.environ, **gateway.setup, "PATH": path})
    if code not in (0, 1):
        raise RuntimeError(said.strip()[-1500:])
    report = json.loads(printed)
    return {
        "name": gateway.name,
        "version": version(gateway),
        "profile": report["source"].rsplit(", ", 1)[-1],
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "seconds": round(time.monotonic() - began),
        "scores": report["scores"],
        "results": [_kept(result) for session in report["sessions"] for result in session["results"]],
    }


def _ended(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str, str]:
    """The exit code of a command and what it wrote. One that takes too long is told to end, with all that it has started."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            printed, said = process.communicate(timeout=_LIMIT_S)
        except subprocess.TimeoutExpired:
            for end in (signal.SIGTERM, signal.SIGKILL):
                with suppress(subprocess.TimeoutExpired, ProcessLookupError):
                    os.killpg(process.pid, end)
                    process.communicate(timeout=_END_S)
            raise
    return process.returncode, printed, said


def _kept(result: dict[str, Any]) -> dict[str, Any]:
    """What the page needs, and what somebody needs who doubts it."""
    found = [f"{one['pointer']} {one['message']}".strip()[:_SHOWN_CHARS] for one in result["evidence"][:_EVIDENCE]]
    kept = {name: result[name] for name in ("id", "category", "level", "status", "count")}
    return {**kept, "message": result["message"][:_SHOWN_CHARS], "evidence": found}


def _play(gateways: Iterable[ScoredGateway]) -> int:
    missed = 0
    RESULTS.mkdir(exist_ok=True)
    for gateway in gateways:
        try:
            if gateway.environment:
                install(gateway.environment, lambda text: print(text, file=sys.stderr, flush=True))
            found = score(gateway)
        except (InstallError, RuntimeError, subprocess.SubprocessError, OSError) as problem:
            print(f"*** {gateway.title} is NOT SCORED: {problem}", file=sys.stderr, flush=True)
            missed += 1
            continue
        path = RESULTS / f"{gateway.name}.json"
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="ascii")
        print(
            f"{gateway.title} {found['version']}: {found['scores'][-1]['percent']} % in {found['seconds']} s",
            flush=True,
        )
    return 1 if missed else 0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench gateways", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = list(dict.fromkeys(name for gateway in GATEWAYS for name in (gateway.environment, gateway.name) if name))
    parser.add_argument("--only", metavar="NAMES", default=",".join(names), help=f"out of: {', '.join(names)}")
    chosen = set(parser.parse_args(arguments).only.split(","))
    if unknown := chosen.difference(names):
        parser.error(f"no such gateway: {', '.join(sorted(unknown))}")
    return _play(gateway for gateway in GATEWAYS if chosen & {gateway.name, gateway.environment})
