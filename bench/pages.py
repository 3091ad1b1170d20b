"""Renders the published figures as tables for the page and as panels for the picture. Pure."""

from __future__ import annotations

from typing import Any, Final

from bench.goals import OURS
from bench.picture import Bar, Panel
from bench.workloads import GROUPS, MIB

BEGIN: Final = "<!-- figures: written by `python -m bench publish` -->"
END: Final = "<!-- end of figures -->"
README_BEGIN: Final = "<!-- speed: written by `python -m bench publish` -->"
README_END: Final = "<!-- end of speed -->"
_FIXED: Final = "fixed-32"
_ASPECT: Final = "aspect-"
_REFERENCES: Final = ("direct", "nginx")
_LOG_TICKS: Final = ((10.0, "10 us"), (100.0, "100 us"), (1e3, "1 ms"), (1e4, "10 ms"), (1e5, "100 ms"))
_SHARE_TICKS: Final = ((0.0, "0"), (0.5, "50 %"), (1.0, "limit"), (1.5, "150 %"), (2.0, "200 %"), (2.5, "250 %"))
_NAMES: Final = {"direct": "the server itself", "nginx": "nginx, plain reverse proxy", OURS: "Pactgate"}


def duration(us: float) -> str:
    """A duration with three digits and a unit."""
    if us < 1000:
        return f"{us:.0f} us" if us >= 100 else f"{us:.1f} us"
    ms = us / 1000
    if ms >= 1000:
        return f"{ms / 1000:.2f} s"
    return f"{ms:.1f} ms" if ms >= 10 else f"{ms:.2f} ms"


def figures_page(figures: dict[str, Any]) -> str:
    run, peers, soak = figures["run"], figures.get("peers"), figures.get("soak")
    aims = [*run["aims"], *(peers["aims"] if peers else [])]
    parts = [_machine("`make bench`", run), _judged("goal", run["goals"], "met", "missed")]
    parts += [_judged("aim", aims, "reached", "not yet"), _workloads(run, ("nginx", "direct"))]
    parts += _aspects(run)
    if peers:
        parts += [
            "### Peers",
            _machine("`make bench-peers`", peers),
            _versions(peers),
            _workloads(peers, ("nginx", OURS)),
        ]
    if soak:
        parts += ["### Soak", _machine("`python -m bench soak`", soak), _soak(soak)]
    return "\n" + "\n\n".join(parts) + "\n"


def panels(figures: dict[str, Any]) -> list[Panel]:
    run, peers = figures["run"], figures.get("peers")
    source = peers or run
    titles = {
        "mixed-32": "CPU per tools/call, mixed requests, HTTP server, 32 clients",
        "stdio-32": "CPU per tools/call, mixed requests, stdio server and child, 32 clients",
    }
    found = [_cpu_panel(source, name, title) for name, title in titles.items() if name in source["workloads"]]
    aims = [*run["goals"], *run["aims"], *(peers["aims"] if peers else [])]
    reached = sum(aim["met"] for aim in aims)
    bars = tuple(Bar(aim["title"], _used(aim), _against(aim), "good" if aim["met"] else "bad") for aim in aims)
    title = f"Goals and aims: {reached} of {len(aims)} reached"
    return [
        *found,
        Panel(title, "each cost as a share of what it may be; shorter is better", bars, _SHARE_TICKS, mark=1.0),
    ]


def _cpu_panel(document: dict[str, Any], workload: str, title: str) -> Panel:
    rows = document["workloads"][workload]["rows"]
    ours = rows[OURS]["cpu_us"]
    versions = document.get("versions", {})
    bars = [
        Bar(_name(row, versions), figures["cpu_us"], _beside(row, figures["cpu_us"], ours), _kind(row))
        for row, figures in sorted(rows.items(), key=lambda item: item[1]["cpu_us"])
    ]
    return Panel(
        title,
        "CPU of the whole process tree, logarithmic scale; shorter is better",
        tuple(bars),
        _LOG_TICKS,
        is_log=True,
    )


def _beside(row: str, cpu_us: float, ours_us: float) -> str:
    return duration(cpu_us) if row == OURS else f"{duration(cpu_us)}, {_times(cpu_us / ours_us)} ours"


def _times(ratio: float) -> str:
    return f"{ratio:.0f} x" if ratio >= 10 else f"{ratio:.1f} x" if ratio >= 1 else f"{ratio:.2f} x"


def _name(row: str, versions: dict[str, Any]) -> str:
    return versions[row]["title"] if row in versions else _NAMES.get(row, row)


def _kind(row: str) -> str:
    return "ours" if row == OURS else "reference" if row in _REFERENCES else "other"


def _used(aim: dict[str, Any]) -> float:
    limit, value = float(aim["limit"]), float(aim["value"])
    return limit / value if aim["isAtLeast"] else value / limit


def _against(aim: dict[str, Any]) -> str:
    word = "at least" if aim["isAtLeast"] else "at most"
    return f"{_amount(aim['value'])} {aim['unit']}, {word} {aim['limit']:g} {aim['unit']}"


def _amount(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _machine(command: str, document: dict[str, Any]) -> str:
    machine = document["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    commit = f", commit {machine['commit']}" if machine.get("commit") else ""
    return (
        f"{command}, {document['at'][:16].replace('T', ' ')} UTC{commit}: {machine['processor']}, {machine['cores']} cores, "
        f"{machine['memoryMib'] / 1024:.0f} GiB, {machine['system']}, Python {machine['python']}, {packages}; "
        f"load average {machine['load']:.1f} at the end."
    )


def _judged(title: str, rows: list[dict[str, Any]], good: str, bad: str) -> str:
    lines = [f"| {title} | | measured | limit |", "|---|---|---|---|"]
    for row in rows:
        bound = f"at {'least' if row['isAtLeast'] else 'most'} {row['limit']:g} {row['unit']}"
        word = good if row["met"] else f"**{bad}**"
        lines.append(f"| {row['title']} | {word} | {_amount(row['value'])} {row['unit']} | {bound} |")
    return "\n".join(lines)


def _workloads(document: dict[str, Any], compared: tuple[str, ...]) -> str:
    heads = "".join(f" x {name} |" for name in compared)
    lines = [
        f"| workload | through | CPU per call |{heads} p50 | calls/s | failed of calls |",
        "|---|---|---:|" + "---:|" * len(compared) + "---:|---:|---:|",
    ]
    versions = document.get("versions", {})
    for name, workload in document["workloads"].items():
        if name.startswith(_ASPECT):
            continue
        for number, (row, found) in enumerate(workload["rows"].items()):
            cpu = found["cpu_us"]
            ratios = "".join(f" {_ratio(cpu, workload['rows'].get(other))} |" for other in compared)
            shown = f"**{row}**" if row == OURS else versions[row]["title"] if row in versions else row
            lines.append(
                f"| {workload['title'] if not number else ''} | {shown} | {duration(cpu)} |{ratios} {duration(found['p50_us'])} "
                f"| {found['calls_per_s']:.0f} | {found['failed']} of {found['calls']} |"
            )
    return "\n".join(lines)


def _aspects(run: dict[str, Any]) -> list[str]:
    """A table of what one property of real requests costs over the fixed shape, for this gateway and for nginx."""
    fixed = run["workloads"].get(_FIXED)
    found = {name: workload for name, workload in run["workloads"].items() if name.startswith(_ASPECT)}
    if not fixed or not found:
        return []
    lines = ["| one property at a time | Pactgate | more than the fixed shape | nginx |", "|---|---:|---:|---:|"]
    for workload in (fixed, *found.values()):
        cpu = workload["rows"][OURS]["cpu_us"]
        more = "-" if workload is fixed else f"{cpu - fixed['rows'][OURS]['cpu_us']:+.1f} us"
        nginx = workload["rows"].get("nginx")
        lines.append(
            f"| {workload['title']} | {duration(cpu)} | {more} | {duration(nginx['cpu_us']) if nginx else '-'} |"
        )
    return ["### One property at a time", "\n".join(lines)]


def headline(figures: dict[str, Any]) -> str:
    """The figures of the README in one paragraph; empty when the mixed workloads were not measured."""
    run, peers = figures["run"], figures.get("peers")
    if not set(GROUPS["mixed"]) <= run["workloads"].keys():
        return ""
    legacy, modern, alone = (run["workloads"][name]["rows"] for name in GROUPS["mixed"])
    costs = [duration(rows[OURS]["cpu_us"]) for rows in (legacy, modern, alone)]
    sentences = [
        f"On {run['machine']['processor']} with {run['machine']['cores']} cores, a `tools/call` of 32 clients takes {costs[0]} of "
        f"CPU time in the legacy protocol and {costs[1]} in the modern one, {_ratio(legacy[OURS]['cpu_us'], legacy.get('nginx'))} "
        f"and {_ratio(modern[OURS]['cpu_us'], modern.get('nginx'))} nginx as a plain proxy in the same run; one client alone "
        f"takes {costs[2]}."
    ]
    sentences += [
        f"{aim['title'][:1].upper()}{aim['title'][1:]}: {_times(aim['value'])}."
        for aim in (peers["aims"] if peers else [])
    ]
    return " ".join(sentences)


def _ratio(cpu_us: float, reference: dict[str, Any] | None) -> str:
    return _times(cpu_us / reference["cpu_us"]) if reference and reference["cpu_us"] else "-"


def _versions(peers: dict[str, Any]) -> str:
    known = ", ".join(f"{peer['title']} {peer['version']}" for peer in peers["versions"].values())
    return f"Versions: {known}."


def _soak(soak: dict[str, Any]) -> str:
    growth_kib, first_mib, last_mib = (
        soak["growthBytesPer10kCalls"] / 1024,
        soak["firstRssBytes"] / MIB,
        soak["lastRssBytes"] / MIB,
    )
    return (
        f"{soak['calls']} calls in {soak['minutes']:g} minutes at {soak['ratePerS']:.0f} calls/s, half of the "
        f"{soak['capacityPerS']:.0f} it had at the start: {soak['failed']} failed; memory in the second half {growth_kib:+.1f} KiB "
        f"per 10,000 calls (at most 64), {first_mib:.1f} MiB at first and {last_mib:.1f} MiB at last; "
        f"descriptors {soak['furtherDescriptors']:+g}. Problems: {'; '.join(soak['problems']) or 'none'}."
    )
