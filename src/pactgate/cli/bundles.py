"""A bundle (`.mcpb`): a zip file with a server in it, unpacked into a folder of its own and made into an entry of the configuration.

The folder is named by the hash of the bundle, so the same bundle is unpacked once. A bundle is refused as a whole if one of its names leads
out of the folder, if it has links or other special files, or if it is larger than it should be. Must not: run anything of it.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import shlex
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final

from msgspec import DecodeError

from pactgate.cli.errors import CommandError
from pactgate.config.value_checks import legal_id
from pactgate.core.display import flat
from pactgate.protocol import messages

MAX_BUNDLE_BYTES: Final = 512 * 1024 * 1024
MAX_UNPACKED_BYTES: Final = 1024 * 1024 * 1024
MAX_FILES: Final = 50_000
_MAX_DIRECTORY_BYTES: Final = MAX_FILES * 512
_MAX_MANIFEST_BYTES: Final = 1024 * 1024
_MAX_RATIO: Final = 200
_RATIO_FROM_BYTES: Final = 1024 * 1024
_CHUNK_BYTES: Final = 1024 * 1024
_SHOWN_CHARS: Final = 2000
_UNREADABLE: Final = (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
"""What a broken zip file raises; RuntimeError for passwords and methods that are not known."""
_MANIFEST: Final = "manifest.json"
_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
_OURS: Final = "\0{"
"""Begins a variable that we put in, until all words are put together: what a bundle says can't become one, whatever stands beside it."""
_HOME: Final = {"HOME": f"{_OURS}HOME}}"}
NewEntry = tuple[str, dict[str, Any], None, tuple[str, ...], Callable[[], None]]


def read_bundle(path: Path, settings: Mapping[str, str]) -> NewEntry:
    """The id, the entry, what a person has to confirm, and what unpacks the bundle then. Raises CommandError."""
    with _opened(path) as bundle:
        folder = _folder() / _digest(path)
        _checked(bundle)
        name, entry = _entry(_manifest(bundle), folder, settings)
    starts = flat(shlex.join([entry["command"], *entry["args"]]), _SHOWN_CHARS)
    env = [f"  env     {flat(f'{one}={value}', _SHOWN_CHARS)}" for one, value in entry.get("env", {}).items()]
    notes = (f"{path.name}, to be unpacked into {folder}:", f"  starts  {starts}", *env)
    return name, entry, None, notes, partial(unpack, path, folder)


def unpack(path: Path, folder: Path) -> None:
    """Unpack a bundle into the folder of its hash, unless it is there. Raises CommandError."""
    with _opened(path) as bundle:
        files = _checked(bundle)
        if _digest(path) != folder.name:
            raise CommandError(f"{path} has changed meanwhile.", exit_code=1)
        if not folder.exists():
            _unpack(bundle, files, folder)


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The bundle. Its directory is read as a whole, so its size is looked at first, in the way `zipfile` will."""
    try:
        with path.open("rb") as file:
            end = zipfile._EndRecData(file)  # type: ignore[attr-defined] # nothing public tells it before it is read
            if end is not None and end[zipfile._ECD_SIZE] > _MAX_DIRECTORY_BYTES:  # type: ignore[attr-defined] # as above
                raise CommandError(f"The bundle has more than {MAX_FILES} files.", exit_code=1)
            with zipfile.ZipFile(file) as bundle:
                yield bundle
    except _UNREADABLE as problem:
        raise CommandError(f"{path} can't be unpacked: {problem}", exit_code=1) from None


def _digest(path: Path) -> str:
    if path.stat().st_size > MAX_BUNDLE_BYTES:
        raise CommandError(f"{path} is larger than {MAX_BUNDLE_BYTES} bytes.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checked(bundle: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The files of the bundle, if all of them may be unpacked."""
    files = [one for one in bundle.infolist() if not one.is_dir()]
    if len(files) > MAX_FILES:
        raise CommandError(f"The bundle has more than {MAX_FILES} files.", exit_code=1)
    if sum(one.file_size for one in files) > MAX_UNPACKED_BYTES:
        raise CommandError(f"The bundle has more than {MAX_UNPACKED_BYTES} bytes unpacked.", exit_code=1)
    for one in bundle.infolist():
        if reason := _why_refused(one):
            raise CommandError(f"The bundle is refused: {flat(one.filename, 200)!r} {reason}.", exit_code=1)
    if len({one.filename.casefold() for one in files}) != len(files):
        raise CommandError("The bundle is refused: two of its files have the same name.", exit_code=1)
    return files


def _why_refused(one: zipfile.ZipInfo) -> str | None:
    path = PurePosixPath(one.filename)
    if path.is_absolute() or ".." in path.parts or "\\" in one.filename or ":" in one.filename or not path.parts:
        return "leads out of its folder"
    kind = stat.S_IFMT(one.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a special file"
    if one.file_size > _RATIO_FROM_BYTES and one.file_size > _MAX_RATIO * max(one.compress_size, 1):
        return "unpacks to far more than is in it"
    return None


def _manifest(bundle: zipfile.ZipFile) -> dict[str, Any]:
    try:
        with bundle.open(_MANIFEST) as file:
            found = messages.value(file.read(_MAX_MANIFEST_BYTES))
    except (KeyError, DecodeError, ValueError, RecursionError):
        raise CommandError(f"The bundle has no {_MANIFEST} that can be read.", exit_code=1) from None
    if not isinstance(found, dict):
        raise CommandError(f"The {_MANIFEST} of the bundle is not an object.", exit_code=1)
    return found


def _entry(manifest: dict[str, Any], folder: Path, settings: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    server = manifest.get("server")
    start = server.get("mcp_config") if isinstance(server, dict) else None
    if not isinstance(start, dict) or not isinstance(start.get("command"), str):
        raise CommandError("The bundle does not say how its server is started (server.mcp_config).", exit_code=1)
    values = {"__dirname": str(folder), "/": "/", **_HOME, **_settings(manifest, settings)}
    args = [_whole(part) for word in _list(start.get("args")) for part in _filled(_plain(word), values)]
    env = start.get("env") if isinstance(start.get("env"), dict) else {}
    filled = {str(name): _whole(" ".join(_filled(_plain(value), values))) for name, value in (env or {}).items()}
    entry = {"command": _whole("".join(_filled(_plain(start["command"]), values))), "args": args, "cwd": str(folder)}
    return legal_id(str(manifest.get("name") or "bundle")), {**entry, **({"env": filled} if filled else {})}


def _settings(manifest: dict[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """What `${user_config.NAME}` is: as given, else its default. A secret is a variable of the environment, never in the file."""
    wanted = manifest.get("user_config")
    wanted = wanted if isinstance(wanted, dict) else {}
    if unknown := [name for name in given if name not in wanted]:
        raise CommandError(f"The bundle has no setting {unknown[0]!r}.", f"It has: {', '.join(wanted) or 'none'}.")
    found: dict[str, Any] = {}
    missing = []
    for name, about in wanted.items():
        facts = about if isinstance(about, dict) else {}
        if name in given:
            found[f"user_config.{name}"] = given[name].replace("${", _OURS)
        elif facts.get("sensitive"):
            found[f"user_config.{name}"] = f"{_OURS}{legal_id(name).replace('-', '_').upper()}}}"
        elif "default" in facts:
            default = facts["default"]
            found[f"user_config.{name}"] = [
                part
                for one in (default if isinstance(default, list) else [default])
                for part in _filled(_plain(one), _HOME)
            ]
        elif facts.get("required"):
            missing.append(name)
        else:
            found[f"user_config.{name}"] = ""
    if missing:
        hint = " ".join(f"--user-config {name}=..." for name in missing)
        raise CommandError(f"The bundle needs settings: {', '.join(missing)}.", f"Give them with {hint}")
    return found


def _filled(word: str, values: Mapping[str, Any]) -> list[str]:
    """The word with its variables; one that is nothing but a variable with a list becomes as many words."""
    whole = _VARIABLE.fullmatch(word)
    if whole is not None and isinstance(values.get(whole[1]), list):
        return list(values[whole[1]])
    return [_VARIABLE.sub(lambda found: _joined(values[found[1]]) if found[1] in values else found[0], word)]


def _whole(word: str) -> str:
    """A word of the entry. Every other `${NAME}` is text: a bundle must not read the environment of the gateway."""
    return word.replace("${", "$${").replace(_OURS, "${")


def _plain(value: Any) -> str:
    """What a bundle says, as text. No program can be given a NUL, and only our own variables have one here."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.replace("\0", "")


def _joined(value: str | list[str]) -> str:
    return " ".join(value) if isinstance(value, list) else value


def _list(values: Any) -> list[Any]:
    return values if isinstance(values, list) else []


def _folder() -> Path:
    home = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local/share")
    return Path(home) / "pactgate" / "bundles"


def _unpack(bundle: zipfile.ZipFile, files: list[zipfile.ZipInfo], folder: Path) -> None:
    """Unpack beside the place, within the bound whatever the sizes in the directory of the zip file say, and move it there as a whole."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix="."))
    left = MAX_UNPACKED_BYTES
    try:
        for one in files:
            path = beside / one.filename
            path.parent.mkdir(parents=True, exist_ok=True)
            with bundle.open(one) as packed, path.open("xb") as file:
                while data := packed.read(_CHUNK_BYTES):
                    left -= len(data)
                    if left < 0:
                        raise CommandError(
                            f"The bundle has more than {MAX_UNPACKED_BYTES} bytes unpacked.", exit_code=1
                        )
                    file.write(data)
            path.chmod(0o700 if one.external_attr >> 16 & 0o100 else 0o600)
        beside.rename(folder)
    finally:
        with suppress(FileNotFoundError):
            shutil.rmtree(beside)
