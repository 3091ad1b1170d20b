"""A live server on the command line: a URL, or a command after `--`. Shared by `compliance --live` and `replay --against`.

The command inherits the environment of this process. Findings about a live server are shown at a file of its repository.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pactgate.capture.format import CaptureError, CaptureErrorKind
from pactgate.cli.errors import CommandError
from pactgate.cli.record import label_of, origin_of
from pactgate.conformance.live import record_live
from pactgate.conformance.probe import ProbeTarget
from pactgate.core.display import visible
from pactgate.core.failures import GatewayFailure
from pactgate.protocol.versions import Era

_PROJECT_FILES: Final = ("pyproject.toml", "package.json", "server.json")


def target_of(words: Sequence[str], headers: Sequence[str], calls: Sequence[str] = ()) -> ProbeTarget:
    """The server of the command line, and the calls to make."""
    if not words:
        raise CommandError("Give a server: a URL, or a command after --.")
    if words[0].startswith(("http://", "https://")):
        if len(words) > 1:
            raise CommandError("Give one URL only.")
        return ProbeTarget(url=words[0], headers=dict(map(header, headers)), calls=tuple(map(_call, calls)))
    if headers:
        raise CommandError("--header needs a URL.")
    return ProbeTarget(command=tuple(words), env=dict(os.environ), calls=tuple(map(_call, calls)))


def label(target: ProbeTarget) -> str:
    return label_of(list(target.command)) if target.url is None else origin_of(target.url)


def header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise CommandError("A header is written 'Name: value'.")
    return name.strip(), value.strip()


def _call(text: str) -> tuple[str, dict[str, Any]]:
    name, _, arguments = text.partition("=")
    try:
        value = json.loads(arguments or "{}")
    except ValueError as problem:
        raise CommandError(f"The arguments of --call {name} are not JSON: {problem}.") from None
    if not name or not isinstance(value, dict):
        raise CommandError("A call is written 'tool={\"argument\": value}'.")
    return name, value


def location_of(target: ProbeTarget, given: str | None) -> str | None:
    """The file of the repository that findings are shown at, relative to its root: as given, else a script of the command, else the
    file that describes the project. None where there is none."""
    if given is not None:
        if not Path(given).is_file():
            raise CommandError(f"--sarif-location: there is no file {given!r}.")
        return _in_repository(Path(given)) or given
    for path in (*_scripts(target.command), *map(Path, _PROJECT_FILES)):
        found = _in_repository(path) if path.is_file() else None
        if found is not None:
            return found
    return None


def _scripts(command: Sequence[str]) -> Iterator[Path]:
    """The files that a command may run: each word that names one, and the module after `-m`."""
    for number, word in enumerate(command):
        if number and command[number - 1] == "-m":
            module = Path(*word.split("."))
            for folder in (Path(), Path("src")):
                yield from (folder / module.with_suffix(".py"), folder / module / "__main__.py")
        elif Path(word).suffix:
            yield Path(word)


def _in_repository(path: Path) -> str | None:
    """The path relative to the root of the repository, else to the working folder; None for a file outside."""
    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    try:
        return path.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return None


def record_session(target: ProbeTarget, output: str | None, folder: str, era: str) -> str:
    """Record a scripted session in `output`, else in the folder, and return the path of the capture. Raises CaptureError."""
    path = Path(output) if output is not None else Path(folder) / "live.json"
    wanted = None if era == "auto" else Era(era)
    try:
        asyncio.run(record_live(target, path, label=label(target), era=wanted))
    except GatewayFailure as failure:
        during = f" (during {failure.operation})" if failure.operation else ""
        why = f"{label(target)} can't be used: {failure.message}{during}"
        raise CaptureError(CaptureErrorKind.UNREADABLE, why) from None
    except OSError as problem:
        raise CaptureError(CaptureErrorKind.UNREADABLE, str(problem)) from None
    if output is not None:
        print(f"The capture is in {visible(output)}.", file=sys.stderr)
    return str(path)
