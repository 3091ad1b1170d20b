"""`pactgate add`: one more server in the configuration file, and for an OpenAPI document what it becomes.

Looks before it writes: the document is mapped, the new text is read again and checked, and only then the file is replaced, in one
step. With `--dry-run` everything but that. Must not: change anything of the file but the new entry, or start a server.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from pactgate.cli import documents, terminal
from pactgate.cli.check import show_problems
from pactgate.config.insert import CantInsert, insert_server, new_file
from pactgate.config.load import find, load
from pactgate.config.problems import ConfigurationError
from pactgate.config.reader import FORMATS
from pactgate.config.sections.openapi import is_url
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.openapi.mapping import Mapped, by_reason
from pactgate.upstreams.openapi.source import load_document

_FETCH_S: Final = 30.0
_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)")
_PLACEHOLDER: Final = "value-to-come"
_NEW_FILE: Final = "pactgate.json"


class AddOptions(NamedTuple):
    """What was given on the command line. Exactly one of `command`, `url` and `openapi` counts."""

    name: str
    command: tuple[str, ...] = ()
    url: str | None = None
    openapi: str | None = None
    base_url: str | None = None
    credentials: tuple[str, ...] = ()
    config: str | None = None
    dry_run: bool = False
    as_json: bool = False


class _Refused(Exception):  # noqa: N818 - how it ends when nothing is written
    """What is wrong, what to do, and the exit code."""

    def __init__(self, message: str, hint: str = "", code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


def add(options: AddOptions) -> int:
    try:
        return _add(options)
    except ConfigurationError as error:
        show_problems(error)
        return 2
    except _Refused as refused:
        terminal.problem(refused.message, refused.hint)
        return refused.code


def _add(options: AddOptions) -> int:
    path = Path(options.config) if options.config is not None else find(Path.cwd(), os.environ) or Path(_NEW_FILE)
    entry = _entry(options, path)
    mapped = _mapped(options, entry, path) if options.openapi is not None else None
    if mapped is not None:
        # Written down: a document that changes can't move the calls elsewhere.
        entry = {"openapi": entry.pop("openapi"), "baseUrl": mapped.base_url} | entry
    text = _text(path, options.name, entry)
    _require_valid(path, text, options.name)
    if not options.dry_run:
        _write(path, text)
    if options.as_json:
        terminal.say_json(_report(options, path, entry, mapped))
    else:
        _show(options, path, mapped)
    return 0


def _entry(options: AddOptions, path: Path) -> dict[str, Any]:
    kinds = [kind for kind in (options.command, options.url, options.openapi) if kind]
    if len(kinds) != 1:
        raise _Refused(
            "Say what the server is, once: a command after --, --url, or --openapi.",
            "For example: pactgate add weather --openapi weather.yaml",
        )
    if options.openapi is None and (options.base_url or options.credentials):
        raise _Refused("--base-url and --credential belong to --openapi.")
    if options.command:
        program, *args = options.command
        return {"command": program, **({"args": args} if args else {})}
    if options.url is not None:
        return {"url": options.url}
    assert options.openapi is not None
    entry: dict[str, Any] = {"openapi": _source(options.openapi, path)}
    if options.base_url is not None:
        entry["baseUrl"] = options.base_url
    if credentials := _credentials(options.credentials):
        entry["credentials"] = credentials
    return entry


def _source(given: str, path: Path) -> str:
    """A file is named from where the configuration is, not from where we are; one elsewhere by its full path."""
    if is_url(given):
        return given
    full = os.path.abspath(given)
    relative = os.path.relpath(full, os.path.abspath(path.parent))
    return full if relative.startswith("..") else relative


def _credentials(given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in given:
        scheme, is_pair, value = text.partition("=")
        if not is_pair or not scheme or not value:
            raise _Refused(
                "A credential is SCHEME=VALUE.", "The value is best a variable: --credential 'bearerAuth=${TOKEN}'."
            )
        found[scheme] = value
    return found


def _mapped(options: AddOptions, entry: dict[str, Any], path: Path) -> Mapped:
    source = entry["openapi"]
    config = ServerConfig(
        id=options.name,
        openapi=source if is_url(source) else os.path.join(os.path.abspath(path.parent), source),
        base_url=entry.get("baseUrl"),
        credentials=entry.get("credentials", {}),
        output_validation="off",
    )
    with terminal.spinner("reading the document"):
        try:
            return asyncio.run(_load(config))
        except GatewayFailure as failure:
            hint = "Give --base-url." if "set baseUrl" in failure.message else ""
            raise _Refused(failure.message, hint, code=1) from None
        except TimeoutError:
            raise _Refused(f"The document did not arrive within {_FETCH_S:g} s.", code=1) from None


async def _load(config: ServerConfig) -> Mapped:
    client = HttpClient()
    try:
        async with asyncio.timeout(_FETCH_S):
            return (await load_document(config, client)).mapped
    finally:
        await client.close()


def _text(path: Path, name: str, entry: dict[str, Any]) -> str:
    """The new text of the file."""
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise _Refused("The format of this file is unknown.", f"Its name must end with {', '.join(FORMATS)}.")
    try:
        before = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        before = ""
    except (OSError, UnicodeDecodeError) as problem:
        raise _Refused(f"{path} can't be read: {problem}.") from None
    try:
        return insert_server(before, form, name, entry) if before.strip() else new_file(form, name, entry)
    except CantInsert as cant:
        raise _Refused(cant.why, cant.lines) from None


def _require_valid(path: Path, text: str, name: str) -> None:
    """The new entry is a good one. What else is wrong in the file was wrong before; `check` says it."""
    environ = {**dict.fromkeys(_VARIABLE.findall(text), _PLACEHOLDER), **os.environ}
    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder) / f"pactgate{path.suffix.lower()}"
        trial.write_text(text, encoding="utf-8")
        trial.chmod(0o600)
        try:
            load(trial, environ=environ)
        except ConfigurationError as error:
            own = [problem for problem in error.problems if name in problem.path]
            if own:
                raise _Refused("\n".join(f"{one.message} {one.hint}".strip() for one in own)) from None


def _write(path: Path, text: str) -> None:
    """All of it or nothing; a link stays a link, and permissions stay what they are."""
    target = Path(os.path.realpath(path))
    try:
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o644
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with open(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, mode)
            os.replace(name, target)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name)
    except OSError as problem:
        raise _Refused(f"{path} can't be written: {problem.strerror}.", code=1) from None


def _show(options: AddOptions, path: Path, mapped: Mapped | None) -> None:
    if mapped is not None:
        documents.show_tools(mapped)
        documents.show_left_out(mapped)
        terminal.say(documents.summary(mapped))
        if (text := documents.advice(mapped)) is not None:
            terminal.say(text)
        if schemes := _missing(mapped):
            variable = f"{options.name.upper().replace('-', '_')}_TOKEN"
            given = f'"credentials": {{ "{schemes[0]}": "${{{variable}}}" }}'
            terminal.say(f"To call what needs credentials, write {given} into the entry.")
    done = "Would be added to" if options.dry_run else "Added to"
    terminal.say(f"{done} {path}: {options.name}.")
    if not options.dry_run:
        terminal.say("A gateway that runs with this file takes it over by itself; `pactgate check --live` tries it.")


def _missing(mapped: Mapped) -> list[str]:
    """Security schemes operations were left out for."""
    found = re.findall(r"the credential (\S+) \(", " ".join(by_reason(mapped.left_out)))
    return list(dict.fromkeys(found))


def _report(options: AddOptions, path: Path, entry: dict[str, Any], mapped: Mapped | None) -> dict[str, Any]:
    report = {"ok": True, "file": str(path), "written": not options.dry_run, "serverId": options.name, "entry": entry}
    return report if mapped is None else {**report, "document": documents.as_dict(mapped)}
