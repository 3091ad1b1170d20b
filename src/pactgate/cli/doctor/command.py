"""`pactgate doctor`: check this machine, the configuration, the port and every server. Changes nothing.

Slow checks run concurrently and are bounded: look-ups and programs by a few seconds, a server by twice its `connectionTimeoutMs`.
Must not: show the value of a variable, a header or a token.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Final

import click
from msgspec.structs import replace

from pactgate.catalog.conflicts import Conflict, ConflictSeverity, find_static_conflicts, merge
from pactgate.cli import terminal
from pactgate.cli.conflict_text import sentences
from pactgate.cli.connect_once import ConnectReport, connect_once
from pactgate.cli.demo import demo
from pactgate.cli.doctor.configuration import examine_configuration
from pactgate.cli.doctor.finding import Finding, FindingLevel, ok, warn
from pactgate.cli.doctor.gateway import examine_port
from pactgate.cli.doctor.machine import examine_machine, examine_programs
from pactgate.cli.doctor.servers import examine_before, examine_row
from pactgate.cli.shared_options import config_option, json_option
from pactgate.config.model import Config
from pactgate.core.masking import Mask

_STYLES: Final = {FindingLevel.OK: "green", FindingLevel.WARN: "yellow", FindingLevel.FAIL: "red"}
_TITLES: Final = {
    "machine": "This machine",
    "configuration": "Configuration",
    "gateway": "Gateway",
    "composition": "Conflicts between servers",
}


@click.command()
@config_option
@json_option
def doctor(*, config: str | None, as_json: bool) -> int:
    """Find out why something does not work: this machine, the configuration, the port, every server.

    Connects to each server once. The exit code is 1 when a check fails.
    """
    with terminal.spinner("checking") as tell:
        found = asyncio.run(_examine(config, tell))
    failures = [finding for finding in found if finding.level is FindingLevel.FAIL]
    if as_json:
        terminal.say_json({"ok": not failures, "findings": [finding._asdict() for finding in found]})
    else:
        _show(found)
    return 1 if failures else 0


async def _examine(path: str | None, tell: terminal.Tell) -> list[Finding]:
    config, found = examine_configuration(path, os.environ)
    found = [*examine_machine(), *found]
    if config is None:
        return found
    with demo() if config.file is None else nullcontext(config.servers) as servers:
        return await _examine_servers(replace(config, servers=servers), found, tell)


async def _examine_servers(config: Config, found: list[Finding], tell: terminal.Tell) -> list[Finding]:
    enabled = [server for server in config.servers.values() if server.enabled]
    port, programs, *before = await asyncio.gather(
        examine_port(config.listen),
        examine_programs(enabled),
        *(examine_before(server) for server in enabled),
    )
    broken = {server.id for server, lines in zip(enabled, before, strict=True) if _has_failed(lines)}
    seen = await _connect_others(config, broken, tell)
    return [
        *found,
        *programs,
        *port,
        *_servers(config, {server.id: lines for server, lines in zip(enabled, before, strict=True)}, seen),
        *_composition(merge(find_static_conflicts(config.servers.values()), seen.conflicts)),
    ]


async def _connect_others(config: Config, broken: set[str], tell: terminal.Tell) -> ConnectReport:
    """Connect to the servers without a failed check: the reason found already is better than a failed connection."""
    servers = {
        id_: replace(server, enabled=server.enabled and id_ not in broken) for id_, server in config.servers.items()
    }
    return await connect_once(replace(config, servers=servers), tell)


def _servers(config: Config, before: dict[str, list[Finding]], seen: ConnectReport) -> Iterable[Finding]:
    mask = Mask(config.secrets)
    rows = {row["serverId"]: row for row in seen.rows}
    for id_, server in config.servers.items():
        yield from before.get(id_, ())
        if id_ not in before:
            yield ok(f"server:{id_}", "disabled, not checked")
        elif not _has_failed(before[id_]):
            yield from examine_row(server, rows[id_], mask)


def _composition(hazards: tuple[Conflict, ...]) -> Iterable[Finding]:
    for severity, text in sentences(hazards):
        is_note = severity is ConflictSeverity.NOTE
        yield ok("composition", f"note: {text}") if is_note else warn("composition", text)


def _has_failed(found: Iterable[Finding]) -> bool:
    return any(finding.level is FindingLevel.FAIL for finding in found)


def _show(found: list[Finding]) -> None:
    shown = None
    for finding in found:
        if finding.topic != shown:
            shown = finding.topic
            terminal.title(_TITLES.get(shown) or f"Server {shown.removeprefix('server:')}")
        terminal.item(finding.level, _STYLES[finding.level], finding.text, finding.hint)
    counts = [sum(finding.level is level for finding in found) for level in (FindingLevel.FAIL, FindingLevel.WARN)]
    failures, warnings = (f"{count} {word}{'s' * (count != 1)}" for count, word in zip(counts, _WORDS, strict=True))
    terminal.say(f"\n{failures}, {warnings}." if any(counts) else "\nEverything works.")


_WORDS: Final = ("failure", "warning")
