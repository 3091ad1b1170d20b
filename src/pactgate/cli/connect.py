"""`pactgate connect` and `pactgate disconnect`: one entry for the gateway in a client's file, and the file as it was before.

The client starts the gateway itself (over stdio) or is given the address of a running one. The file before the change is kept beside it; as
long as nobody changed the file since, `disconnect` gives back every byte, and else it removes the entry alone. Must not: change anything
else in the file, or leave a token in it where the client can take it from elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import msgspec
from msgspec import Struct

from pactgate.cli import terminal
from pactgate.cli.chosen_gateway import configured_gateway
from pactgate.cli.client_access import INPUT_ID, ClientAccess, MadeKey, end_key
from pactgate.cli.clients import chosen_client
from pactgate.cli.completions import client_ids
from pactgate.cli.config_file import find_config, load_config
from pactgate.cli.connect_check import ConnectCheck, check_entry
from pactgate.cli.errors import CommandError
from pactgate.cli.shared_options import config_option, json_option
from pactgate.config.clients.client_file import ClientFile
from pactgate.config.clients.dialect import to_address, to_ours, to_program
from pactgate.config.clients.points_here import points_here
from pactgate.config.clients.shown_entries import NAME, spell_entry
from pactgate.config.clients.table import Client
from pactgate.config.file_access import locked
from pactgate.config.persist import replace_file
from pactgate.config.problems import EditError, UnreadableError

_BACKUP: Final = ".before-pactgate"
_MAX_STATE_BYTES: Final = 1024 * 1024


class _Change(Struct, frozen=True):
    """A file that `connect` changed, the digest of what it wrote, the name of its entry, and the key that it made."""

    file: str
    digest: str
    existed: bool
    name: str = NAME
    key_file: str = ""
    key_id: str = ""


class _Chosen(NamedTuple):
    """The file of a client that a command is about."""

    client: Client
    path: Path
    file: ClientFile


@click.command(
    epilog="""\
\b
Examples:
  pactgate connect cursor             give Cursor the address of the gateway
  pactgate connect claude-desktop     let Claude Desktop start the gateway
  pactgate connect vscode --project   in .vscode/mcp.json of this folder
  pactgate connect codex --print      show the entry, write nothing
"""
)
@click.argument("name", metavar="CLIENT", shell_complete=client_ids)
@click.option("--stdio", is_flag=True, help="Let the client start a gateway of its own.")
@click.option("--url", metavar="URL", help="Address of the gateway. Default: the running one.")
@click.option("--view", metavar="VIEW", help="Only what this view shows.")
@click.option("--project", is_flag=True, help="In the file of this folder instead of the user's.")
@click.option("--replace", "is_replace", is_flag=True, help="Remove the entries of servers that the gateway has.")
@click.option("--print", "is_print", is_flag=True, help="Print the entry; write nothing.")
@config_option
@json_option
def connect(
    *,
    name: str,
    stdio: bool,
    url: str | None,
    view: str | None,
    project: bool,
    is_replace: bool,
    is_print: bool,
    config: str | None,
    as_json: bool,
) -> int:
    """Let an MCP client use the gateway: adds one entry to its file.

    `pactgate clients --all` lists the clients. `pactgate disconnect CLIENT` gives the file back.
    """
    client = chosen_client(name)
    if client.import_only:
        raise CommandError(f"{client.title} is discontinued; only `pactgate import` knows it.")
    path = find_config(config)
    if client.url is None and url is not None and not stdio:
        raise CommandError(f"{client.title} takes no addresses in its file.", "Leave out --url: it starts the gateway.")
    chosen = _choose(client, project=project)
    access = None
    if stdio or client.url is None:
        entry = to_program(client, _program(path, view))
    else:
        address = f"{_gateway_address(url)}/mcp{f'/v/{view}' if view else ''}"
        access = _access(chosen, path, is_print=is_print, is_project=project)
        entry = to_address(client, address, None) if access is None else access.entry(address)
    if is_print:
        print(spell_entry(client, entry))
        return 0
    file, replaced = _with_entry(chosen, entry, access), list[str]()
    if is_replace:
        file, replaced = _without_ours(chosen, file, path)
    is_changed = file.data != chosen.file.data
    if is_changed:
        _write(chosen, file.data or b"", access)
    with terminal.spinner(f"connecting as {client.title} does"):
        ours, token = to_ours(client, entry, Path.cwd()), None if access is None else access.token
        check = check_entry(ours, token, is_new_key=access is not None and access.made is not None)
    if as_json:
        facts = {
            "client": client.id,
            "file": str(chosen.path),
            "changed": is_changed,
            "entry": entry if access is None else access.shown(entry),
            "replaced": replaced,
            **({} if access is None else {"key": access.shown_key, "variable": access.variable}),
        }
        terminal.say_json({**facts, "check": check._asdict()})
        return 0 if check.ok else 1
    terminal.say(f"{client.title} uses the gateway{'' if is_changed else ' already'}: {chosen.path}.")
    if replaced:
        terminal.say(f"Removed there, because the gateway has them: {', '.join(replaced)}.")
    if access is not None:
        access.tell()
    return _tell(client, check)


@click.command()
@click.argument("name", metavar="CLIENT", shell_complete=client_ids)
@click.option("--project", is_flag=True, help="In the file of this folder instead of the user's.")
@json_option
def disconnect(*, name: str, project: bool, as_json: bool) -> int:
    """Give a client its file back as it was before `pactgate connect`."""
    client = chosen_client(name)
    chosen = _choose(client, project=project)
    change = _change_of(chosen)
    how = "nothing to do"
    if change is not None and chosen.file.data is not None and _digest(chosen.file.data) == change.digest:
        _restore(chosen.path, change)
        how = "as it was before"
    else:
        names = _own_names(chosen.file.servers(Path.cwd()), change)
        if names:
            _remove_entries(chosen, names)
            how = f"without {', '.join(names)}"
            if change is not None and change.existed:
                how += f"; it was changed since, so its copy stays at {chosen.path}{_BACKUP}"
    if change is not None and change.key_id and end_key(change.key_file, change.key_id):
        how += "; its key is revoked"
    if change is not None:
        _note_change(change.file, None)
    if as_json:
        terminal.say_json({"client": client.id, "file": str(chosen.path), "result": how})
    else:
        terminal.say(f"{chosen.path}: {how}.")
    return 0


def _gateway_address(given: str | None) -> str:
    address = given or configured_gateway().url
    if not address.startswith("http"):
        raise CommandError("The gateway listens on a Unix socket only.", "Connect the client with --stdio.")
    return address.rstrip("/")


def _program(config: Path | None, view: str | None) -> list[str]:
    """How a client starts the gateway, from any folder and with any PATH."""
    program = shutil.which(sys.argv[0]) if os.path.basename(sys.argv[0]) == NAME else None
    start = [os.path.abspath(program)] if program else [sys.executable, "-m", NAME]
    file = ["--config", str(config.resolve())] if config is not None else []
    return [*start, "serve", "--stdio", *file, *(["--view", view] if view else [])]


def _access(chosen: _Chosen, path: Path | None, *, is_print: bool, is_project: bool) -> ClientAccess | None:
    """How the client gets in; None where anybody does."""
    if path is None or load_config(path, only=("listen", "auth")).allows_anonymous:
        return None
    access = ClientAccess.of(chosen.client, path, chosen.file.servers().get(_name_of_entry(chosen), {}))
    if access.is_in_file and not is_print:
        access.require_token(is_shared_file=is_project)
    return access


def _choose(client: Client, *, project: bool) -> _Chosen:
    places = client.project_files(Path.cwd()) if project else client.user_files(os.environ)
    if not places:
        raise CommandError(f"{client.title} has no file of {'a project' if project else 'the user'}.")
    path = next((place for place in places if place.exists()), places[0])
    path = Path(os.path.realpath(path))
    try:
        return _Chosen(client, path, ClientFile.open(client, path))
    except UnreadableError as problem:
        raise CommandError(f"{path} can't be read: {problem.message}", problem.hint) from None


def _with_entry(chosen: _Chosen, entry: Mapping[str, Any], access: ClientAccess | None) -> ClientFile:
    """The file with the entry, and with the question for the token where the client asks for it."""
    file = chosen.file
    servers = file.servers()
    name = _name_of_entry(chosen)
    if servers.get(name) == {**({"name": name} if chosen.client.as_list else {}), **entry}:
        return file
    try:
        if name in servers and chosen.client.as_list:
            file = file.changed(file.without_entry(name))
        file = file.changed(file.with_entry(name, entry))
        if access is not None and access.is_asked_for:
            file = file.changed(file.with_question(INPUT_ID, "Token of the Pactgate gateway"))
    except EditError as problem:
        raise CommandError(
            f"{chosen.path}: {problem.why}", problem.lines or spell_entry(chosen.client, entry)
        ) from None
    return file


def _name_of_entry(chosen: _Chosen) -> str:
    return next(iter(_own_names(chosen.file.servers(), _change_of(chosen))), NAME)


def _own_names(servers: Mapping[str, Mapping[str, Any]], change: _Change | None) -> list[str]:
    """The entries that are the gateway: by what they start or call, and the one that `connect` wrote, at whatever address."""
    written = change.name if change is not None else None
    return [name for name, entry in servers.items() if name == written or points_here(entry)]


def _without_ours(chosen: _Chosen, file: ClientFile, config: Path | None) -> tuple[ClientFile, list[str]]:
    """The file without the entries of servers that the gateway has itself."""
    if config is None:
        raise CommandError("There is no configuration to replace them by.", "`pactgate import` takes them over first.")
    known = {_identity(server) for server in load_config(config).servers.values()}
    removed = []
    for name, entry in chosen.file.servers().items():
        ours = to_ours(chosen.client, entry, Path.cwd())
        if ours is None or points_here(entry) or _entry_identity(ours.entry) not in known:
            continue
        try:
            file = file.changed(file.without_entry(name))
        except EditError as problem:
            raise CommandError(f"{chosen.path}: {problem.why}") from None
        removed.append(name)
    return file, removed


def _identity(server: Any) -> tuple[Any, ...]:
    return server.url, server.command, tuple(server.args)


def _entry_identity(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return entry.get("url"), entry.get("command"), tuple(entry.get("args", ()))


def _write(chosen: _Chosen, data: bytes, access: ClientAccess | None) -> None:
    """Write the file, and make the key that its entry needs."""
    if access is not None:
        access.make_key()
    before = chosen.file.data
    change = _change_of(chosen)
    is_ours = change is not None and before is not None and _digest(before) == change.digest
    try:
        chosen.path.parent.mkdir(parents=True, exist_ok=True)
        if not is_ours and before is not None:
            backup = Path(f"{chosen.path}{_BACKUP}")
            backup.unlink(missing_ok=True)  # a project may have a link there, to any file of the user
            shutil.copy2(chosen.path, backup)
            if (
                change is not None and change.name in chosen.file.servers()
            ):  # it was changed since, and is not to get our entry back
                backup.write_bytes(_without(chosen, [change.name]))
        if before is not None and access is not None and access.is_in_file:
            chosen.path.chmod(0o600)  # a file that was there keeps its mode
        replace_file(chosen.path, data.decode(), mode=0o600)
    except OSError as problem:
        if access is not None and access.made is not None:
            end_key(access.made.file, access.made.id)
        raise CommandError(f"{chosen.path} can't be written: {problem.strerror}.", exit_code=1) from None
    existed = change.existed if change is not None and is_ours else before is not None
    made = None if access is None else access.made
    key = made or (MadeKey("", "") if change is None else MadeKey(change.key_file, change.key_id))
    fresh = _Change(str(chosen.path), _digest(data), existed, _name_of_entry(chosen), key.file, key.id)
    _note_change(fresh.file, fresh)


def _restore(path: Path, change: _Change) -> None:
    try:
        if not change.existed:
            path.unlink()
            return
        os.replace(f"{path}{_BACKUP}", path)
    except OSError as problem:
        raise CommandError(f"{path} can't be restored: {problem.strerror}.", exit_code=1) from None


def _without(chosen: _Chosen, names: list[str]) -> bytes:
    """The file without these entries."""
    file = chosen.file
    try:
        for name in names:
            file = file.changed(file.without_entry(name))
    except EditError as problem:
        raise CommandError(f"{chosen.path}: {problem.why}", f"Remove {', '.join(names)} by hand.") from None
    return file.data or b""


def _remove_entries(chosen: _Chosen, names: list[str]) -> None:
    try:
        replace_file(chosen.path, _without(chosen, names).decode())
    except OSError as problem:
        raise CommandError(f"{chosen.path} can't be written: {problem.strerror}.", exit_code=1) from None


def _tell(client: Client, check: ConnectCheck) -> int:
    if not check.had_token:
        return 0
    if check.ok and not check.tools:
        terminal.warning("The gateway has no tools yet; `pactgate check --live` says why.")
        return 1
    if check.ok:
        read = ", read its status" if check.has_read else ""
        terminal.say(
            f"Tried as {client.title} does: listed {check.tools} tool{'s' * (check.tools != 1)}{read}. "
            f"Restart {client.title} to see them."
        )
        return 0
    terminal.warning(f"The gateway does not answer yet: {check.problem}")
    return 1


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _state_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(state) / NAME / "connected.json"


def _changes() -> list[_Change]:
    with suppress(OSError, msgspec.DecodeError):
        data = _state_file().read_bytes()[:_MAX_STATE_BYTES]
        return msgspec.json.decode(data, type=list[_Change])
    return []


def _change_of(chosen: _Chosen) -> _Change | None:
    return next((one for one in _changes() if one.file == str(chosen.path)), None)


def _note_change(file: str, change: _Change | None) -> None:
    """Keep the change of one file, or nothing of it. What another command has noted of other files in the meantime stays."""
    path = _state_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(f"{path}.lock"):
            changes = [one for one in _changes() if one.file != file]
            changes += [] if change is None else [change]
            replace_file(path, json.dumps(msgspec.to_builtins(changes), indent=1), mode=0o600)
    except OSError as problem:
        terminal.warning(
            f"{path} can't be written ({problem.strerror}), so `pactgate disconnect` only removes the entry later."
        )
