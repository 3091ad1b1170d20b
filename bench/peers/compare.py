"""`python -m bench peers`: other gateways and this one in front of the same server, one process each, in interleaved rounds.

pip and npm install the peers once into .tools/peers, in the versions of bench/peers/pins; a peer that can't be installed or
started is reported and skipped. All receive the mixed requests of real clients. A first round is a warm-up and does not count.
Peers that bridge a stdio server are compared over stdio, with the CPU time of the server included, as it is for this gateway.
Exit code 0 when the comparison was made, even without some peers; 1 when calls through this gateway failed; 2 when it could not run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

from bench import report
from bench.goals import AIMS, OURS
from bench.lab import Lab, LabError, Row
from bench.load import LoadError
from bench.measurements import GoalResult, Measurements, check_goals
from bench.peers.install import InstallError, install
from bench.peers.kinds import INSTALLED, PEERS, Peer
from bench.rounds import Bench, Plan, Progress
from bench.workloads import CLIENTS, OVER_STDIO, Workload

FULL: Final = Plan(rounds=3, seconds=2.0, warmup_each=1)
QUICK: Final = Plan(rounds=1, seconds=1.0, warmup_each=1)
_COMPARED: Final = ("nginx", "pactgate")
_VERSION_S: Final = 30


def workloads(peers: Sequence[Peer]) -> list[Workload]:
    """The workloads for this gateway and its peers; HTTP and stdio servers apart, because their costs differ."""
    beside = [Row(via, via) for via in ("direct", "nginx", OURS)]
    over_http = (*beside, *(Row(peer.name, peer.name) for peer in peers if peer.transport == "http"))
    over_stdio = (
        OVER_STDIO,
        *(Row(peer.name, peer.name, transport="stdio") for peer in peers if peer.transport == "stdio"),
    )
    return [
        Workload("mixed-1", "mixed, HTTP server, one client", over_http),
        Workload("mixed-32", "mixed, HTTP server, 32 clients", over_http, connections=CLIENTS),
        Workload("list-23", "tools/list, 23 tools, one client", over_http, kind="list"),
        Workload("stdio-1", "mixed, stdio server, one client (CPU includes the child)", over_stdio),
        Workload(
            "stdio-32", "mixed, stdio server, 32 clients (CPU includes the child)", over_stdio, connections=CLIENTS
        ),
    ]


def _loudly(text: str) -> None:
    print(f"*** {text}", file=sys.stderr, flush=True)


def _installed(wanted: Iterable[Peer]) -> list[Peer]:
    ready: dict[str, bool] = {}
    for peer in wanted:
        if peer.environment in ready:
            continue
        try:
            install(peer.environment, lambda text: print(text, file=sys.stderr, flush=True))
            ready[peer.environment] = True
        except InstallError as problem:
            ready[peer.environment] = False
            _loudly(f"{peer.environment} could not be installed and is NOT MEASURED: {problem}")
    return [peer for peer in wanted if ready[peer.environment]]


def _startable(lab: Lab, peers: Iterable[Peer]) -> list[Peer]:
    able = []
    for peer in peers:
        try:
            lab.target(Row(peer.name, peer.name, transport="stdio" if peer.transport == "stdio" else "http"))
            able.append(peer)
        except LabError as problem:
            _loudly(f"{peer.title} did not start and is NOT MEASURED: {problem}")
    return able


def version(peer: Peer) -> str:
    """The installed version of a peer."""
    if peer.environment == "node":
        place = str(INSTALLED / "node" / "node_modules" / peer.package / "package.json")
        command = ["node", "-p", f"require({place!r}).version"]
    else:
        code = f"from importlib.metadata import version; print(version({peer.package!r}))"
        command = [str(INSTALLED / peer.environment / "bin" / "python"), "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_VERSION_S)
    return said.stdout.strip() or "unknown"


def _run(lab: Lab, progress: Progress, peers: Sequence[Peer], options: dict[str, Any]) -> int:
    plan = QUICK if options["quick"] else FULL
    measured = _startable(lab, peers)
    vias = ["direct", *(["nginx"] if lab.nginx else []), OURS, *(peer.name for peer in measured)]
    bench = Bench(lab, progress, vias, plan)
    chosen = workloads(measured)
    bench.rounds(chosen, 1, "warming up, not counted:")
    bench.measurements.results.clear()
    bench.rounds(chosen, plan.rounds, "round")
    progress.clear()
    for name, why in bench.given_up.items():
        _loudly(f"{name} was given up: {why}")
    measurements = bench.measurements
    aimed = check_peer_aims(measurements)
    print("\n\n".join([report.table(chosen, measurements, _COMPARED), report.aims(aimed)]))
    known = {peer.name: {"title": peer.title, "version": version(peer)} for peer in measured}
    path = report.write(
        "peers",
        {"options": options, "peers": known, "givenUp": bench.given_up, **report.as_document(measurements, [], aimed)},
    )
    print(f"\nwritten to {path}")
    ours = [run for rows in measurements.results.values() for run in rows.get(OURS, [])]
    return 1 if any(run.failed for run in ours) else 0


def check_peer_aims(measurements: Measurements) -> list[GoalResult]:
    """The aims that compare with a peer; `make bench` checks all others, with more rounds."""
    return [result for result in check_goals(measurements, AIMS) if result.goal.is_at_least]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="NAMES", help=f"out of: {', '.join(peer.name for peer in PEERS)}")
    parser.add_argument("--quick", action="store_true", help="one short round")
    options = parser.parse_args(arguments)
    names = options.only.split(",") if options.only else [peer.name for peer in PEERS]
    unknown = set(names) - {peer.name for peer in PEERS}
    if unknown:
        parser.error(f"no such peer: {', '.join(sorted(unknown))}")
    peers = _installed([peer for peer in PEERS if peer.name in names])
    progress = Progress()
    try:
        with Lab(peers) as lab:
            return _run(lab, progress, peers, vars(options))
    except (LabError, LoadError) as problem:
        progress.clear()
        print(f"bench: {problem}", file=sys.stderr)
        return 2
