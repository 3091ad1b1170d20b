"""Writes a changed setting into the operator's file: edited in place, read back, and put in place by one rename.

The rest of the file stays as it is, comments and variables included. The new text has to be a valid configuration as a whole. An
edit that has no safe place is refused with what to write by hand. A reader of the file sees the old or the new one, complete.
Must not: write into a file that says something else than what the gateway last read from it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Any

from pactgate.config.change import SERVERS, is_same_file
from pactgate.config.edit import SERVER_KEYS, put, remove
from pactgate.config.file_access import replacing
from pactgate.config.load import load
from pactgate.config.model import Config
from pactgate.config.problems import ConfigFindings, ConfigurationError, EditError, Path, show, spell
from pactgate.config.reader import FORMATS, read
from pactgate.config.value_checks import legal_id
from pactgate.core.failures import GatewayFailure, Kind


def keep(running: Config, path: Path, value: Any) -> None:
    """Write one setting; None removes it from the file. `running` is the configuration as the file was last read."""
    if running.file is None:
        raise _refused("there is no configuration file to write it to; start the gateway with one")
    file = FilePath(os.path.realpath(running.file))
    _require_unchanged(file, running)
    text, form = file.read_bytes().decode("utf-8-sig"), FORMATS[file.suffix.lower()]
    values = read(text, form, ConfigFindings(file.name)) or {}
    keys = keys_in_file(path, values)
    if value is None and not _is_given(values, keys):
        return
    try:
        edited = remove(text, form, keys) if value is None else put(text, form, keys, value)
    except EditError as problem:
        by_hand = f"remove {spell(keys)} from" if value is None else f"write {spell(keys)} = {show(value)} into"
        raise _refused(f"{problem.why} Please {by_hand} {file.name} by hand") from None
    replace_file(file, edited, _require_valid)


def _require_unchanged(file: FilePath, running: Config) -> None:
    try:
        is_same = is_same_file(load(file, environ=os.environ), running)
    except ConfigurationError as problem:
        raise _refused(f"{file.name} has problems at the moment: {problem.message}") from problem
    if not is_same:
        raise GatewayFailure(
            Kind.CONFLICT,
            f"{file.name} says something else than what the gateway last read from it. "
            "It is reloaded in a moment, or on SIGHUP; try again then.",
        )


def replace_file(
    path: FilePath, text: str, check: Callable[[FilePath], None] | None = None, *, mode: int = 0o644
) -> None:
    """Write the text beside the file, let it be checked, and rename it into place. A link, the owner and the permissions are kept.

    `mode` is that of a file which was not there before."""
    file = FilePath(os.path.realpath(path))
    before = file.stat() if file.exists() else None

    def place(beside: str, target: str) -> None:
        if check is not None:
            check(FilePath(beside))
        os.replace(beside, target)

    with replacing(file, place, suffix=file.suffix) as beside:
        beside.write(text.encode())
        beside.flush()
        if before is not None:
            with suppress(PermissionError):  # only root may give a file to another user
                os.fchown(beside.fileno(), before.st_uid, before.st_gid)
        os.fchmod(beside.fileno(), before.st_mode & 0o7777 if before is not None else mode)
        os.fsync(beside.fileno())
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _require_valid(file: FilePath) -> None:
    try:
        load(file, environ=os.environ, overrides={"lock.mode": "off"})  # the file has another name now, so no lock file
    except ConfigurationError as problem:
        wrong = "; ".join(f"{one.path}: {one.message}" for one in problem.problems)
        raise _refused(f"the file would not be a valid configuration any more: {wrong}") from problem


def keys_in_file(path: Path, values: Any) -> tuple[str, ...]:
    """Where the file itself has the setting: servers may stand under the key of VS Code, and have ids in other spellings."""
    keys = [str(part) for part in path]
    if path[0] == SERVERS:
        keys[0] = next((key for key in SERVER_KEYS if _spelling(keys[1], values.get(key, {}))), keys[0])
        keys[1] = _spelling(keys[1], values.get(keys[0], {})) or keys[1]
    return tuple(keys)


def _spelling(id_: str, servers: Any) -> str | None:
    """How the file spells the id of this server."""
    return next((name for name in servers if name == id_), None) or next(
        (name for name in servers if legal_id(name) == id_), None
    )


def _is_given(values: Any, keys: tuple[str, ...]) -> bool:
    for key in keys:
        if not isinstance(values, dict) or key not in values:
            return False
        values = values[key]
    return True


def _refused(why: str) -> GatewayFailure:
    return GatewayFailure(Kind.CHANGE_UNDONE, why)
