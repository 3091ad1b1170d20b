"""`pactgate clients` and `pactgate import`: which MCP clients are installed, and taking over the servers they have.

`import` shows its plan before it writes; credentials go to a file of their own that only the user can read. Must not: change the files of
clients, print a credential, or write one into the configuration.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from pactgate.cli import terminal
from pactgate.cli.completions import client_ids
from pactgate.cli.config_file import find_config
from pactgate.cli.errors import CommandError
from pactgate.cli.shared_options import config_option, json_option
from pactgate.cli.table import Column, show_table
from pactgate.config.clients.client_file import ClientFile
from pactgate.config.clients.dialect import to_ours
from pactgate.config.clients.plan import FoundServer, ImportPlan, PlannedServer, plan_import
from pactgate.config.clients.points_here import points_here
from pactgate.config.clients.table import Client, clients, find_client
from pactgate.config.edit import SERVER_KEYS, add_server, put, value_at
from pactgate.config.env_file import parse_env_file, with_variables
from pactgate.config.file_access import read_regular_file
from pactgate.config.load import ENV_FILE
from pactgate.config.persist import replace_file
from pactgate.config.problems import ConfigFindings, EditError, UnreadableError
from pactgate.config.reader import FORMATS, Format, read

NEW_FILE: Final = "pactgate.json"
_NEW_ENV_FILE: Final = "pactgate.env"
_MAX_ENV_FILE_BYTES: Final = 1024 * 1024
_STATES: Final = {"new": "green", "differs": "yellow", "there": "dim"}


class InstalledFile(NamedTuple):
    """A file of a client that is there; `problem` says why it can't be read."""

    client: Client
    path: Path
    file: ClientFile | None
    problem: str = ""


def installed(chosen: Sequence[Client], folder: Path) -> Iterator[InstalledFile]:
    """The files of these clients that exist, the user's before the project's."""
    for client in chosen:
        for path in dict.fromkeys([*client.user_files(os.environ), *client.project_files(folder)]):
            if path.is_file():
                try:
                    yield InstalledFile(client, path, ClientFile.open(client, path))
                except UnreadableError as problem:
                    yield InstalledFile(client, path, None, problem.message)


def chosen_clients(names: Sequence[str]) -> list[Client]:
    """All clients, or those with these ids. Raises CommandError."""
    return [chosen_client(name) for name in names] if names else list(clients())


def chosen_client(name: str) -> Client:
    found = find_client(name)
    if isinstance(found, Client):
        return found
    hint = f"Did you mean {found}?" if found else f"Known: {', '.join(client.id for client in clients())}."
    raise CommandError(f"No client {name!r} is known.", hint)


@click.command("clients")
@click.option("--all", "show_all", is_flag=True, help="Show also the clients that are not installed.")
@json_option
def list_clients(*, show_all: bool, as_json: bool) -> int:
    """List the MCP clients on this machine, their servers, and which of them use the gateway."""
    folder = Path.cwd()
    rows: list[dict[str, Any]] = []
    for found in installed(clients(), folder):
        servers = found.file.servers(folder) if found.file is not None else {}
        ours = [name for name, entry in servers.items() if points_here(entry)]
        rows.append(
            {
                "client": found.client.id,
                "title": found.client.title,
                "file": str(found.path),
                "servers": len(servers) - len(ours),
                "gateway": ours,
                "problem": found.problem,
            }
        )
    present = {row["client"] for row in rows}
    absent = [client for client in clients() if client.id not in present]
    if as_json:
        terminal.say_json({"clients": rows, "notFound": [client.id for client in absent]})
        return 0
    shown = [
        (row["client"], row["servers"], ", ".join(row["gateway"]) or "no", row["problem"] or _short(row["file"]))
        for row in rows
    ]
    shown += [(client.id, "", "", "not installed") for client in absent if show_all]
    if not shown:
        terminal.say("No client of those the gateway knows is installed; `pactgate clients --all` lists them.")
        return 0
    show_table(
        (Column("CLIENT"), Column("SERVERS", is_number=True), Column("GATEWAY"), Column("FILE", is_long=True)), shown
    )
    terminal.say()
    terminal.say("`pactgate import` takes their servers over, `pactgate connect CLIENT` lets a client use the gateway.")
    return 0


@click.command(
    "import",
    epilog="""\
\b
Examples:
  pactgate import --dry-run         show what would be taken over
  pactgate import claude-desktop cursor
""",
)
@click.argument("names", metavar="[CLIENT]...", nargs=-1, shell_complete=client_ids)
@config_option
@click.option(
    "--env-file",
    metavar="FILE",
    help="Where credentials go. Default: what envFile names, else pactgate.env.",
)
@click.option("--without-secrets", is_flag=True, help="Write no credentials; the variables have to be set by hand.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Show the plan; write nothing.")
@json_option
def import_servers(
    *,
    names: tuple[str, ...],
    config: str | None,
    env_file: str | None,
    without_secrets: bool,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Take over the servers of the MCP clients on this machine. Can be repeated.

    Reads the files of all known clients, of the user and of this folder, or those of the named clients. Equal servers become one entry.
    """
    target = _Target.open(find_config(config) or Path(NEW_FILE), env_file)
    found, problems = _found(chosen_clients(names))
    plan = plan_import(found, target.servers(), target.variables())
    if as_json and (dry_run or not plan.fresh):
        terminal.say_json(_report(target, plan, problems, written=False))
        return 0
    if not as_json:
        _show(target, plan, problems)
    if not plan.fresh or dry_run:
        return 0
    if not yes:
        _ask(target, plan, without_secrets=without_secrets)
    target.write(plan, with_secrets=not without_secrets)
    if as_json:
        terminal.say_json(_report(target, plan, problems, written=True))
        return 0
    count = len(plan.fresh)
    terminal.say(f"Added {count} server{'s' * (count != 1)} to {target.path}.")
    if plan.secrets and not without_secrets:
        terminal.say(f"The credentials are in {target.env_path}, which only you can read.")
    terminal.say(
        "`pactgate check --live` tests the connections; `pactgate connect CLIENT` lets a client use the gateway."
    )
    return 0


class _Target:
    """Our configuration file and the file of its credentials, as they are now."""

    def __init__(self, path: Path, text: str, env_file: str | None) -> None:
        self.path = path
        self._text = text
        self._format = FORMATS.get(path.suffix.lower(), Format.JSON)
        findings = ConfigFindings(str(path))
        self._root = (read(text, self._format, findings) if text.strip() else {}) or {}
        if findings.problems or not isinstance(self._root, dict):
            raise CommandError(f"{path} can't be read.", "`pactgate check` says why.")
        named = self._root.get(ENV_FILE)
        self._names_env_file = isinstance(named, str)
        if env_file and self._names_env_file and (path.parent / str(named)).resolve() != Path(env_file).resolve():
            raise CommandError(
                f"{path} takes its variables from {named} (envFile), so nothing would read {env_file}.",
                "Leave out --env-file.",
            )
        chosen = env_file or (named if isinstance(named, str) else _NEW_ENV_FILE)
        self.env_path = Path(chosen) if env_file else path.parent / chosen

    @classmethod
    def open(cls, path: Path, env_file: str | None) -> _Target:
        try:
            text = path.read_text(encoding="utf-8-sig") if path.exists() else ""
        except (OSError, UnicodeDecodeError) as problem:
            raise CommandError(f"{path} can't be read: {problem}.") from None
        return cls(path, text, env_file)

    def servers(self) -> dict[str, Any]:
        held = [value_at(self._root, (key,)) for key in SERVER_KEYS]
        return {
            name: entry
            for one in held
            if isinstance(one, dict)
            for name, entry in one.items()
            if isinstance(entry, dict)
        }

    def variables(self) -> dict[str, str]:
        text = self._env_text()
        variables = parse_env_file(text)
        if not isinstance(variables, dict):
            raise CommandError(f"{self.env_path}: {variables.message}", variables.hint)
        return variables

    def write(self, plan: ImportPlan, *, with_secrets: bool) -> None:
        """The credentials first: the configuration never names a file that is not there."""
        text = self._text
        try:
            for one in plan.fresh:
                text = add_server(text, self._format, one.server, one.entry)
            if plan.secrets and with_secrets and not self._names_env_file:
                relative = os.path.relpath(self.env_path, self.path.parent or ".")
                text = put(
                    text,
                    self._format,
                    (ENV_FILE,),
                    relative if not relative.startswith("..") else str(self.env_path.resolve()),
                )
        except EditError as problem:
            raise CommandError(problem.why, problem.lines) from None
        try:
            if plan.secrets and with_secrets:
                if self.env_path.exists():  # a file that was there keeps its mode
                    self.env_path.chmod(0o600)
                replace_file(self.env_path, with_variables(self._env_text(), plan.secrets), mode=0o600)
            replace_file(self.path, text)
        except OSError as problem:
            raise CommandError(f"{problem.filename} can't be written: {problem.strerror}.", exit_code=1) from None

    def _env_text(self) -> str:
        if not self.env_path.exists():
            return ""
        try:
            return read_regular_file(self.env_path, _MAX_ENV_FILE_BYTES).decode()
        except (UnreadableError, UnicodeDecodeError) as problem:
            raise CommandError(f"{self.env_path} can't be read: {problem}") from None


def _found(chosen: Sequence[Client]) -> tuple[list[FoundServer], list[str]]:
    """The servers of these clients, but the gateway itself, and the files that can't be read."""
    folder, found, problems = Path.cwd(), [], []
    for one in installed(chosen, folder):
        if one.file is None:
            problems.append(f"{one.path} can't be read: {one.problem}")
            continue
        for name, entry in one.file.servers(folder).items():
            if points_here(entry):
                continue
            ours = to_ours(one.client, entry, folder)
            if ours is not None:
                found.append(FoundServer(one.client.title, name, ours))
    return found, problems


def _show(target: _Target, plan: ImportPlan, problems: Sequence[str]) -> None:
    for problem in problems:
        terminal.warning(problem)
    if not plan.servers:
        terminal.say("No client has a server to take over.")
        return
    rows = [(one.server, one.state, ", ".join(one.sources), _what(one)) for one in plan.servers]
    columns = (
        Column("SERVER"),
        Column("STATE", styles=_STATES),
        Column("FROM"),
        Column("STARTS OR CALLS", is_long=True),
    )
    show_table(columns, rows)
    terminal.say()
    for one in plan.servers:
        for note in _notes(one):
            terminal.say(f"{one.server}: {note}")
    if plan.secrets:
        terminal.say(f"Credentials that become variables: {', '.join(plan.secrets)}.")
    if not plan.fresh:
        terminal.say(f"{target.path} has them all; there is nothing to do.")


def _notes(one: PlannedServer) -> Iterator[str]:
    if one.state == "differs":
        yield "is in the configuration with other settings, which stay"
    elif one.server not in one.names:
        yield f"was called {', '.join(one.names)}"
    if one.asked_for:
        yield f"set {', '.join(one.asked_for)} in the environment; the client asks for it"
    yield from one.notes


def _what(one: PlannedServer) -> str:
    return one.entry.get("url") or " ".join([one.entry["command"], *one.entry.get("args", ())])


def _ask(target: _Target, plan: ImportPlan, *, without_secrets: bool) -> None:
    if not sys.stdin.isatty():
        raise CommandError(
            "Nothing was written.", "Add --yes to write it without asking, or --dry-run to see the plan only."
        )
    secrets = (
        f", and {len(plan.secrets)} credentials to {target.env_path} (mode 0600)"
        if plan.secrets and not without_secrets
        else ""
    )
    count = len(plan.fresh)
    click.confirm(f"Add {count} server{'s' * (count != 1)} to {target.path}{secrets}?", abort=True, default=True)


def _report(target: _Target, plan: ImportPlan, problems: Sequence[str], *, written: bool) -> dict[str, Any]:
    servers = [
        {
            "serverId": one.server,
            "state": one.state,
            "from": list(one.sources),
            "names": list(one.names),
            "entry": json.loads(json.dumps(one.entry)),
            "notes": list(_notes(one)),
        }
        for one in plan.servers
    ]
    return {
        "file": str(target.path),
        "envFile": str(target.env_path) if plan.secrets else None,
        "written": written,
        "servers": servers,
        "variables": list(plan.secrets),
        "problems": list(problems),
    }


def _short(path: str) -> str:
    home = os.path.expanduser("~")
    return f"~{path.removeprefix(home)}" if path.startswith(f"{home}/") else path
