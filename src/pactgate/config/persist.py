"""A changed setting written into the operator's file: edited in place, read back, and swapped in by one rename.

The rest of the file stays as it is, comments and variables included. The result is read back before it counts: it has to say exactly what
it said before and the new value, and it has to be a good configuration. What can't be placed that surely is refused with the line
to write by hand. Whoever reads the file meanwhile sees the old or the new one, whole. Must not: write into a file that says something
else than what was last read from it.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Any

from pactgate.config.change import SERVERS, is_same_file
from pactgate.config.edit import EditError, put
from pactgate.config.load import load
from pactgate.config.model import Config
from pactgate.config.problems import ConfigFindings, ConfigurationError, Path, show, spell
from pactgate.config.reader import FORMATS, read
from pactgate.config.tree import ConfigNode
from pactgate.core.failures import GatewayFailure, Kind


def keep(running: Config, path: Path, value: Any) -> None:
    """Write one setting; None takes it out of the file. `running` is the configuration as the file was last read."""
    if running.file is None:
        raise _refused("there is no configuration file to write it to; start the gateway with one")
    file = FilePath(os.path.realpath(running.file))
    _require_unchanged(file, running)
    text = file.read_bytes().decode("utf-8-sig")
    before = _plain_text(text, file)
    place = _place(path, before)
    if value is None:
        if _is_given(before, place):
            raise _refused(f"{spell(place)} can't be taken out of {file.name} by itself; remove it there by hand")
        return
    _swap(file, _edited(text, file, before, place, value))


def _require_unchanged(file: FilePath, running: Config) -> None:
    try:
        is_same = is_same_file(load(file, environ=os.environ), running)
    except ConfigurationError as problem:
        raise _refused(f"{file.name} has problems at the moment: {problem.message}") from problem
    if not is_same:
        raise GatewayFailure(
            Kind.CONFLICT,
            f"{file.name} says something else than what the gateway last read from it. "
            "It is taken over in a moment, or has to be by SIGHUP; try again then.",
        )


def _edited(text: str, file: FilePath, before: Any, place: Path, value: Any) -> str:
    by_hand = f"write {spell(place)} = {show(value)} into {file.name} by hand"
    try:
        edited = put(text, FORMATS[file.suffix.lower()], place, value)
    except EditError:
        raise _refused(f"there is no sure place for it; {by_hand}") from None
    wanted = _with(before, place, value)
    if _plain_text(edited, file) != wanted:
        raise _refused(f"it can't be put there without touching the rest; {by_hand}")
    return edited


def _swap(file: FilePath, text: str) -> None:
    """Beside it, checked as a whole, on the disk, then in its place."""
    handle, name = tempfile.mkstemp(prefix=f".{file.stem}-", suffix=file.suffix, dir=file.parent)
    before, is_in_place = file.stat(), False
    try:
        with open(handle, "w", encoding="utf-8", newline="") as beside:
            beside.write(text)
            beside.flush()
            with suppress(PermissionError):  # only root may give a file to somebody else
                os.fchown(beside.fileno(), before.st_uid, before.st_gid)
            os.fchmod(beside.fileno(), before.st_mode & 0o7777)
            os.fsync(beside.fileno())
        _require_good(FilePath(name))
        os.replace(name, file)
        is_in_place = True
    finally:
        if not is_in_place:
            os.unlink(name)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _require_good(file: FilePath) -> None:
    try:
        load(file, environ=os.environ)
    except ConfigurationError as problem:
        wrong = "; ".join(f"{one.path}: {one.message}" for one in problem.problems)
        raise _refused(f"the file would not be a good configuration any more: {wrong}") from problem


def _place(path: Path, root: Any) -> Path:
    """Where the file itself has it: servers may stand under the name VS Code gives them."""
    if path[0] == SERVERS and path[1] in root.get("servers", {}):
        return ("servers", *path[1:])
    return path


def _plain_text(text: str, file: FilePath) -> Any:
    root = read(text, FORMATS[file.suffix.lower()], ConfigFindings(file.name))
    return None if root is None else _plain(root)


def _plain(node: ConfigNode) -> Any:
    if isinstance(node.value, dict):
        return {key: _plain(member) for key, member in node.value.items()}
    return [_plain(item) for item in node.value] if isinstance(node.value, list) else node.value


def _is_given(root: Any, path: Path) -> bool:
    for part in path:
        if not isinstance(root, dict) or part not in root:
            return False
        root = root[part]
    return True


def _with(root: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    table = root if isinstance(root, dict) else {}
    return {**table, path[0]: _with(table.get(path[0]), path[1:], value)}


def _refused(why: str) -> GatewayFailure:
    return GatewayFailure(Kind.CHANGE_UNDONE, why)
