"""Reduces result files to the medians that are published. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bench.measurements import median
from bench.peers.compare import workloads as peer_workloads
from bench.peers.kinds import PEERS
from bench.workloads import MIB, WORKLOADS

_MEDIANS: Final = ("cpu_us", "p50_us", "p99_us", "calls_per_s")


def summary(found: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The published figures of a run and, where present, of a comparison with peers and of a soak test."""
    run, peers, soak = found["run"], found.get("peers"), found.get("soak")
    titles = {workload.name: workload.title for workload in WORKLOADS}
    published: dict[str, Any] = {
        "run": {
            **_where(run),
            "workloads": _workloads(run, titles),
            "start": {
                "firstCallS": round(median(start["first_call_s"] for start in run["starts"]), 3),
                "idleRssMib": round(median(start["rss_bytes"] for start in run["starts"]) / MIB, 1),
                "furtherServerMib": round(median(run["furtherServerBytes"]) / MIB, 3),
            },
            "gates": {name: round(cost, 2) for name, cost in run["gates"].items()},
            "goals": run["goals"],
            "aims": run["aims"],
        }
    }
    if peers is not None:
        titles = {workload.name: workload.title for workload in peer_workloads(PEERS)}
        published["peers"] = {
            **_where(peers),
            "versions": peers["peers"],
            "workloads": _workloads(peers, titles),
            "aims": peers["aims"],
        }
    if soak is not None:
        kept = {name: value for name, value in soak.items() if name not in ("samples", "at", "machine")}
        published["soak"] = {**_where(soak), **kept}
    return published


def _where(document: dict[str, Any]) -> dict[str, Any]:
    return {"at": document["at"], "machine": document["machine"]}


def _workloads(document: dict[str, Any], titles: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: {"title": titles[name], "rows": {row: _row(runs) for row, runs in rows.items() if runs}}
        for name, rows in document["workloads"].items()
        if name in titles
    }


def _row(runs: list[dict[str, Any]]) -> dict[str, Any]:
    medians = {name: round(median(run[name] for run in runs), 1) for name in _MEDIANS}
    return {
        **medians,
        "rounds": len(runs),
        "calls": sum(run["calls"] for run in runs),
        "failed": sum(run["failed"] for run in runs),
    }
