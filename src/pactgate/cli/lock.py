"""`pactgate lock`: pin the definitions of all servers in a file, compare servers with it, and approve what changed.

Every form connects to the servers once, as `check --live` does. Must not: call a tool, or write anything but the lock file.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final, NamedTuple

import click
from msgspec.structs import replace

from pactgate.catalog.definition_diff import DefinitionChange, differences
from pactgate.catalog.definition_pins import INSTRUCTIONS, SERVER, LockFinding, compare, identity_of, lists_of, name_of
from pactgate.cli import terminal
from pactgate.cli.completions import server_ids
from pactgate.cli.config_file import find_config, load_config
from pactgate.cli.connect_once import Offer, connect_once
from pactgate.cli.errors import CommandError
from pactgate.cli.lock_report import DefinitionDifference, as_json, as_sarif, show_differences
from pactgate.cli.shared_options import config_option, json_option
from pactgate.config.definition_lock import (
    LISTS,
    LockedDefinition,
    LockedServer,
    LockFile,
    lock_path,
    lock_text,
    locked,
    read_lock,
)
from pactgate.config.model import Config
from pactgate.config.persist import replace_file
from pactgate.config.problems import UnreadableError
from pactgate.protocol.messages import encode_json

_NO_LOCK: Final = "There is no lock file yet; `pactgate lock` writes one."


class _Offered(NamedTuple):
    """What the servers offer now, and why some could not be asked."""

    config: Config
    file: Path
    servers: dict[str, LockedServer]
    unreachable: dict[str, str]


@click.group(
    invoke_without_command=True,
    epilog="""\
\b
Examples:
  pactgate lock                        pin what all servers offer now
  pactgate lock --check                compare, for CI (1: something differs)
  pactgate lock diff crm               show what changed
  pactgate lock accept crm.refund      approve one definition
""",
)
@config_option
@click.option("--check", is_flag=True, help="Compare only; write nothing. The exit code is 1 when something differs.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "sarif"]), default="text", help="Output of --check."
)
@click.pass_context
def lock(context: click.Context, *, config: str | None, check: bool, form: str) -> int:
    """Pin the definitions of tools, prompts and resources in a lock file beside the configuration.

    `lock.mode` of the configuration decides what the gateway does with a definition that differs from it.
    """
    if context.invoked_subcommand is not None:
        context.obj = config
        return 0
    if form != "text" and not check:
        raise CommandError("--format needs --check.")
    offered = _ask(config)
    if check:
        return _check(offered, form)
    return _write_all(offered)


@lock.command()
@click.argument("name", metavar="[SERVER[.NAME]]", required=False, shell_complete=server_ids)
@config_option
@json_option
@click.pass_context
def diff(context: click.Context, *, name: str | None, config: str | None, as_json: bool) -> int:
    """Show how definitions differ from the lock file.

    Names changed words, schemas and hints, invisible and imitated characters. The exit code is 1 when something differs.
    """
    offered = _ask(config or context.obj, only=name)
    found = _differences(_read(offered.file), offered, name)
    return _show(found, offered, "json" if as_json else "text")


@lock.command()
@click.argument("name", metavar="SERVER[.NAME]", shell_complete=server_ids)
@config_option
@click.pass_context
def accept(context: click.Context, *, name: str, config: str | None) -> int:
    """Approve a server, or one definition, as it is now.

    NAME is a tool, prompt, resource or template of the server, or `instructions`.
    """
    offered = _ask(config or context.obj, only=name)
    known = _read(offered.file) if offered.file.exists() else LockFile()
    server, _, entry = name.partition(".")
    _require_reached(offered, server)
    now, before = offered.servers[server], known.servers.get(server)
    found = _differences(known, offered, name)
    if not found:
        raise CommandError(
            f"Nothing of {name} differs from the lock file.", "`pactgate lock diff` shows what does.", exit_code=1
        )
    if entry and before is None:
        raise CommandError(f"{server} is not in the lock file.", f"`pactgate lock accept {server}` approves all of it.")
    accepted = now if not entry or before is None else _with_entry(before, now, entry)
    _write(offered.file, LockFile(servers={**known.servers, server: accepted}))
    show_differences(found)
    terminal.say(f"Approved in {offered.file}. A running gateway takes it over by itself.")
    return 0


def _with_entry(before: LockedServer, now: LockedServer, name: str) -> LockedServer:
    if name == INSTRUCTIONS:
        return replace(before, instructions=now.instructions)
    lists = {}
    for listing in LISTS:
        entries, offered = dict(before.entries(listing)), now.entries(listing)
        entries.pop(name, None)
        lists[listing] = {**entries, **({name: offered[name]} if name in offered else {})}
    return replace(before, **lists)


def _ask(given: str | None, *, only: str | None = None) -> _Offered:
    """Connect to the servers once. `only` is the name of a server, or of something of it."""
    path = find_config(given)
    if path is None:
        raise CommandError("There is no configuration, so there is nothing to lock.", "Give one with --config.")
    config = load_config(path, {"lock.mode": "off"})
    wanted = None if only is None else only.partition(".")[0]
    if wanted is not None and wanted not in config.servers:
        raise CommandError(f"There is no server {wanted!r}.", f"Servers: {', '.join(config.servers) or 'none'}.")
    asked = {id_: one for id_, one in config.servers.items() if one.enabled and wanted in (None, id_)}
    with terminal.spinner("connecting") as tell:
        report = asyncio.run(connect_once(replace(config, servers=asked), tell))
    reasons = {str(row["serverId"]): str(row.get("lastError") or "no answer") for row in report.rows}
    return _Offered(
        config,
        lock_path(path),
        {id_: _locked(offer) for id_, offer in report.offers.items()},
        {id_: reasons[id_] for id_ in asked if id_ not in report.offers},
    )


def _locked(offer: Offer) -> LockedServer:
    instructions = offer.identity.instructions
    lists = {
        listing: {entry.key: locked(entry.definition) for entry in entries}
        for listing, entries in lists_of(offer.lists).items()
    }
    return LockedServer(
        identity=identity_of(offer.config, offer.identity),
        name=name_of(offer.identity),
        instructions=None if instructions is None else locked(encode_json(instructions)),
        **lists,
    )


def _read(file: Path) -> LockFile:
    try:
        return read_lock(file)
    except UnreadableError as problem:
        hint = problem.hint if file.exists() else _NO_LOCK
        raise CommandError(f"{file}: {problem.message}", hint) from None


def _read_if_usable(file: Path) -> LockFile:
    try:
        return read_lock(file)
    except UnreadableError as problem:
        if file.exists():
            terminal.warning(f"{problem.message} A new one takes its place.")
        return LockFile()


def _differences(known: LockFile, offered: _Offered, name: str | None = None) -> list[DefinitionDifference]:
    found: list[DefinitionDifference] = []
    for id_, now in offered.servers.items():
        before = known.servers.get(id_)
        findings = compare(id_, None if before is None else before.pins(), now.pins())
        found += (
            DefinitionDifference(one, _changes(one, before, now))
            for one in findings
            if name in (None, id_, one.full_name)
        )
    gone = [id_ for id_ in known.servers if id_ not in offered.config.servers and name is None]
    return [*found, *(DefinitionDifference(LockFinding(id_, SERVER, "", "removed")) for id_ in gone)]


def _changes(finding: LockFinding, before: LockedServer | None, now: LockedServer) -> list[DefinitionChange]:
    if finding.entries == SERVER:
        return [*differences(None if before is None else _identity(before), _identity(now)), *_alarms(before, now)]
    old_one, new_one = _entry(before, finding), _entry(now, finding)
    if new_one is None:
        return []
    return differences(None if old_one is None else bytes(old_one.definition), bytes(new_one.definition))


def _alarms(before: LockedServer | None, now: LockedServer) -> list[DefinitionChange]:
    """What nobody should miss in the definitions of a server that is new as a whole."""
    if before is not None:
        return []
    entries = [(name, entry) for listing in LISTS for name, entry in now.entries(listing).items()]
    found = ((name, one) for name, entry in entries for one in differences(None, bytes(entry.definition)))
    return [one._replace(member=f"{name}.{one.member}") for name, one in found if one.is_alarming]


def _identity(server: LockedServer) -> bytes:
    return encode_json({"name": server.name, "identity": list(server.identity)})


def _entry(server: LockedServer | None, finding: LockFinding) -> LockedDefinition | None:
    if server is None:
        return None
    return server.instructions if finding.entries == INSTRUCTIONS else server.entries(finding.entries).get(finding.name)


def _check(offered: _Offered, form: str) -> int:
    return _show(_differences(_read(offered.file), offered), offered, form)


def _show(found: list[DefinitionDifference], offered: _Offered, form: str) -> int:
    if form == "json":
        terminal.say_json(as_json(found, offered.unreachable, offered.file))
    elif form == "sarif":
        terminal.say_json(as_sarif(found, offered.unreachable, offered.file))
    else:
        show_differences(found)
        for id_, why in offered.unreachable.items():
            terminal.item("down", "yellow", f"{id_}: {why}")
        if not found and not offered.unreachable:
            terminal.say(f"Everything is as in {offered.file}.")
    return 1 if found or offered.unreachable else 0


def _write_all(offered: _Offered) -> int:
    """Pin everything. A server that can't be asked keeps what the file has."""
    known = _read_if_usable(offered.file)
    kept = {id_: one for id_, one in known.servers.items() if id_ in offered.config.servers}
    found = _differences(known, offered) if known.servers else []
    lock_file = LockFile(servers={**kept, **offered.servers})
    _write(offered.file, lock_file)
    show_differences(found)
    counts = {"servers": len(lock_file.servers)}
    counts |= {listing: sum(len(one.entries(listing)) for one in lock_file.servers.values()) for listing in LISTS}
    counted = [f"{count} {what if count != 1 else what.removesuffix('s')}" for what, count in counts.items() if count]
    terminal.say(f"Wrote {offered.file}: {', '.join(counted) or 'no servers'}.")
    for id_, why in offered.unreachable.items():
        terminal.warning(
            f"{id_} can't be asked and {'keeps its entry' if id_ in kept else 'is not in the file'}: {why}"
        )
    terminal.say('With "lock": {"mode": "hold"} in the configuration, the gateway holds back what differs from it.')
    return 1 if offered.unreachable else 0


def _write(file: Path, lock_file: LockFile) -> None:
    try:
        replace_file(file, lock_text(lock_file))
    except OSError as problem:
        raise CommandError(f"{file} can't be written: {problem.strerror}.", exit_code=1) from None


def _require_reached(offered: _Offered, server: str) -> None:
    if server not in offered.servers:
        why = offered.unreachable.get(server, "it is disabled")
        raise CommandError(f"{server} can't be asked: {why}", exit_code=1)
