"""`pactgate add`: add a server to the configuration file; for an OpenAPI document, show the tools it makes.

The document is mapped and the new text is checked before the file is replaced atomically. `--dry-run` leaves out only the last step.
Must not: change anything in the file but the new entry, or start a server.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from pactgate.cli import openapi_report, terminal
from pactgate.cli.config_file import find_config
from pactgate.cli.errors import CommandError
from pactgate.cli.shared_options import config_option, header_option, json_option
from pactgate.cli.tools_file import require_python_file
from pactgate.config.edit import SERVER_KEYS, add_server
from pactgate.config.load import load
from pactgate.config.persist import replace_file
from pactgate.config.problems import ConfigurationError, EditError
from pactgate.config.reader import FORMATS
from pactgate.config.sections.openapi import is_url
from pactgate.config.server_settings import ServerConfig
from pactgate.config.value_checks import check_server_id
from pactgate.core.display import flat
from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.egress import origin_of
from pactgate.upstreams.openapi.mapping import MappedDocument, by_reason, some_of
from pactgate.upstreams.openapi.server import described_api
from pactgate.upstreams.openapi.source import load_document

_FETCH_S: Final = 30.0
_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)")
_PLACEHOLDER: Final = "value-to-come"
_NEW_FILE: Final = "pactgate.json"
_SHOWN_CHARS: Final = 200
_SHOWN_REASONS: Final = 10


@click.command(
    epilog="""\
\b
Examples:
  pactgate add weather --openapi weather.yaml
  pactgate add crm --url https://crm.example/mcp --header 'X-Key: ${CRM_KEY}'
  pactgate add notes --tools notes.py
  pactgate add files -- npx -y @modelcontextprotocol/server-filesystem .
  pactgate add io.github.acme/crm --registry server.json
  pactgate add crm.mcpb --user-config folder=/data
"""
)
@click.argument("name")
@click.argument("command", metavar="[-- CMD...]", nargs=-1)
@click.option("--url", metavar="URL", help="Address of an MCP server.")
@click.option("--tools", metavar="FILE", help="A file of Python tools.")
@click.option("--openapi", metavar="URL|FILE", help="OpenAPI document of a REST API; its tools are shown.")
@click.option(
    "--base-url",
    metavar="URL",
    help="Address of the API. Default: as the document says, if it is public or where the document is.",
)
@click.option(
    "--credential",
    "credentials",
    multiple=True,
    metavar="SCHEME=VALUE",
    help="Credential for a security scheme of the document, best as ${VARIABLE}. Repeatable.",
)
@click.option(
    "--env", "variables", multiple=True, metavar="NAME=VALUE", help="Environment variable of CMD. Repeatable."
)
@click.option("--cwd", metavar="DIR", help="Folder CMD starts in.")
@header_option
@click.option(
    "--registry", metavar="URL|FILE", help="Take the server NAME from this registry, or from its server.json."
)
@click.option(
    "--user-config", multiple=True, metavar="NAME=VALUE", help="A setting that a bundle asks for. Repeatable."
)
@config_option
@click.option("--yes", is_flag=True, help="Add what a bundle or a registry says without asking.")
@click.option("--dry-run", is_flag=True, help="Show what would be done; write nothing.")
@json_option
def add(
    *,
    name: str,
    config: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Add a server to the configuration. The file is created if there is none. Starts nothing.

    NAME is the id of the server: letters a-z, digits and hyphens. CMD is the program to start, with its arguments.
    NAME can also be the file of a bundle (FILE.mcpb), or the name of a server in a registry (io.github.x/y, with --registry).
    """
    given = _Given(**options)
    path = find_config(config) or Path(_NEW_FILE)
    new = _found(name, given) or _NewServer(name, *_entry(name, given, path))
    text = _text(path, new.name, new.entry)
    _require_valid(path, text, new.name)
    if new.notes:
        _confirm(new, is_certain=yes or dry_run, as_json=as_json)
    if not dry_run:
        if new.install is not None:
            new.install()
        _write(path, text)
    if as_json:
        report = {"ok": True, "file": str(path), "written": not dry_run, "serverId": new.name, "entry": new.entry}
        terminal.say_json(report if new.mapped is None else {**report, "document": openapi_report.as_dict(new.mapped)})
        return 0
    if new.mapped is not None:
        _show_document(new.name, new.mapped)
    terminal.say(f"{'Would be added to' if dry_run else 'Added to'} {path}: {new.name}.")
    if not dry_run:
        _warn(path)
        terminal.say("A running gateway reloads this file by itself. `pactgate check --live` tests the connection.")
    return 0


class _Given(NamedTuple):
    """The options of the command line that make the entry."""

    command: tuple[str, ...]
    url: str | None
    tools: str | None
    openapi: str | None
    base_url: str | None
    credentials: tuple[str, ...]
    variables: tuple[str, ...]
    cwd: str | None
    headers: tuple[str, ...]
    registry: str | None
    user_config: tuple[str, ...]

    @property
    def sources(self) -> int:
        return sum(map(bool, (self.command, self.url, self.tools, self.openapi)))


class _NewServer(NamedTuple):
    """The entry to add. `notes` are what a person is asked about, because somebody else wrote the entry."""

    name: str
    entry: dict[str, Any]
    mapped: MappedDocument | None = None
    notes: tuple[str, ...] = ()
    install: Callable[[], None] | None = None


def _found(name: str, given: _Given) -> _NewServer | None:
    """The entry of a bundle or of a registry; None for a server that the command line describes."""
    is_bundle = name.endswith(".mcpb")
    if given.registry is None and not is_bundle:
        if given.user_config:
            raise CommandError("--user-config needs a bundle, FILE.mcpb.")
        if "/" in name and not given.sources:
            raise CommandError(f"{name} looks like a name in a registry.", "Say which one: --registry URL or FILE.")
        return None
    if given.sources or (is_bundle and given.registry is not None):
        raise CommandError("A bundle and an entry of a registry say themselves what to start.", "Leave out the rest.")
    if is_bundle:
        from pactgate.cli.bundles import read_bundle

        return _NewServer(*read_bundle(Path(name), _pairs(given.user_config, "=", "--user-config", "NAME=VALUE")))
    from pactgate.cli.registry import read_entry

    assert given.registry is not None
    return _NewServer(*read_entry(name, given.registry))


def _confirm(new: _NewServer, *, is_certain: bool, as_json: bool) -> None:
    """Show exactly what will be started, and ask. Raises where nobody can be asked."""
    if not as_json:
        for note in new.notes:
            terminal.say(note)
    if is_certain:
        return
    if as_json or not sys.stdin.isatty():
        raise CommandError("This was not written, because nobody confirmed it.", "--yes confirms it.")
    if not click.confirm("Add it?", default=False):
        raise CommandError("Nothing was written.", exit_code=1)


def _entry(name: str, given: _Given, path: Path) -> tuple[dict[str, Any], MappedDocument | None]:
    """The entry that the command line describes."""
    _require_consistent(name, given)
    mapped = None
    if given.openapi is not None:
        server = ServerConfig(
            id=name,
            openapi=given.openapi if is_url(given.openapi) else os.path.abspath(given.openapi),
            base_url=given.base_url,
            credentials=_credentials(given.credentials),
            output_validation="off",
        )
        mapped = _mapped(server)
        _require_tools(mapped)
        entry = _openapi_entry(_source(given.openapi, path), server, mapped)
    elif given.url is not None:
        entry = {"url": given.url}
    elif given.tools is not None:
        require_python_file(given.tools)
        entry = {"tools": _source(given.tools, path)}
    else:
        command, *args = given.command
        entry = {"command": command, **({"args": args} if args else {})}
    more = {"env": _pairs(given.variables, "=", "--env", "NAME=VALUE"), "cwd": given.cwd}
    more["headers"] = _pairs(given.headers, ":", "--header", "'NAME: VALUE'")
    return entry | {key: value for key, value in more.items() if value}, mapped


def _require_consistent(name: str, given: _Given) -> None:
    if given.sources != 1:
        raise CommandError(
            "Give exactly one of: a command after --, --url, --tools, --openapi.",
            "For example: pactgate add weather --openapi weather.yaml",
        )
    if given.openapi is None and (given.base_url or given.credentials):
        raise CommandError("--base-url and --credential need --openapi.")
    if (fault := check_server_id(name)) is not None:
        raise CommandError(*fault)
    if (given.variables or given.cwd) and not (given.command or given.tools):
        raise CommandError("--env and --cwd need a command after --, or --tools.")
    if given.headers and (given.command or given.tools):
        raise CommandError("--header needs --url or --openapi.")


def _openapi_entry(source: str, server: ServerConfig, mapped: MappedDocument) -> dict[str, Any]:
    """The address is written down, so that a changed document can't redirect the calls, but only where it is the operator's own word."""
    entry: dict[str, Any] = {"openapi": source}
    if server.base_url is not None or is_url(source):
        entry["baseUrl"] = mapped.base_url
    if server.credentials:
        entry["credentials"] = server.credentials
    return entry


def _source(given: str, path: Path) -> str:
    """The file relative to the folder of the configuration; outside of that folder its absolute path."""
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
            raise CommandError(
                "A credential is SCHEME=VALUE.", "The value is best a variable: --credential 'bearerAuth=${TOKEN}'."
            )
        found[scheme] = value
    return found


def _pairs(given: tuple[str, ...], mark: str, option: str, form: str) -> dict[str, str]:
    found = {}
    for text in given:
        name, is_pair, value = text.partition(mark)
        if not is_pair or not name.strip():
            raise CommandError(f"{option} is {form}.", "The value of a secret is best a variable: ${TOKEN}.")
        found[name.strip()] = value.strip() if mark == ":" else value
    return found


def _mapped(config: ServerConfig) -> MappedDocument:
    with terminal.spinner("reading the document"):
        try:
            mapped = asyncio.run(_load(config))
            if config.base_url is None:
                described_api(config, mapped)
            _require_own_origin(config, mapped)
            return mapped
        except GatewayFailure as failure:
            hint = "Give --base-url." if "baseUrl" in failure.message else ""
            raise CommandError(failure.message, hint, exit_code=1) from None
        except TimeoutError:
            raise CommandError(f"The document did not arrive within {_FETCH_S:g} s.", exit_code=1) from None


def _require_tools(mapped: MappedDocument) -> None:
    """Raise where the server would have no tool: nobody adds that on purpose."""
    if mapped.endpoints:
        return
    reasons = [f"{some_of(operations)}: {reason}" for reason, operations in by_reason(mapped.left_out).items()]
    raise CommandError(
        "The document has no operation that can be a tool, so nothing was added.",
        "\n".join(reasons[:_SHOWN_REASONS]) or "It has no operations.",
        exit_code=1,
    )


def _require_own_origin(config: ServerConfig, mapped: MappedDocument) -> None:
    """Raise where a document from a URL wants calls to go elsewhere: a document's host is never the operator's word."""
    assert config.openapi is not None
    is_own = config.base_url is not None or not is_url(config.openapi)
    if not is_own and origin_of(mapped.base_url) != origin_of(config.openapi):
        raise CommandError(
            f"The document wants calls to go to {flat(mapped.base_url, _SHOWN_CHARS)}, another place than it comes from.",
            f"If you trust that place, add --base-url {flat(mapped.base_url, _SHOWN_CHARS)}.",
            exit_code=1,
        )


async def _load(config: ServerConfig) -> MappedDocument:
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
        raise CommandError("The format of this file is unknown.", f"Its name must end with {', '.join(FORMATS)}.")
    try:
        before = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        before = ""
    except (OSError, UnicodeDecodeError) as problem:
        raise CommandError(f"{path} can't be read: {problem}.") from None
    try:
        return add_server(before, form, name, entry)
    except EditError as cant:
        raise CommandError(cant.why, cant.lines) from None


def _require_valid(path: Path, text: str, name: str) -> None:
    """Raise where the new entry is invalid. Other problems of the file are left to `check`."""
    environ = {**dict.fromkeys(_VARIABLE.findall(text), _PLACEHOLDER), **os.environ}
    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder) / f"pactgate{path.suffix.lower()}"
        trial.write_text(text, encoding="utf-8")
        trial.chmod(0o600)
        try:
            load(trial, environ=environ, overrides={"lock.mode": "off"})
        except ConfigurationError as error:
            own = [problem for problem in error.problems if _is_about(problem.path, name)]
            if own:
                raise CommandError("\n".join(f"{one.message} {one.hint}".strip() for one in own)) from None


def _is_about(path: str, name: str) -> bool:
    """Whether the place of a problem is in the entry of this server."""
    section, _, rest = path.partition(".")
    return section in SERVER_KEYS and rest.partition(".")[0] == name


def _write(path: Path, text: str) -> None:
    try:
        replace_file(path, text, mode=0o600)
    except OSError as problem:
        raise CommandError(f"{path} can't be written: {problem.strerror}.", exit_code=1) from None


def _warn(path: Path) -> None:
    """Say what `check` would warn of now, as that other users may read a credential in the file."""
    with suppress(ConfigurationError):
        for warning in load(path, environ=os.environ, overrides={"lock.mode": "off"}).warnings:
            terminal.warning(str(warning))


def _show_document(name: str, mapped: MappedDocument) -> None:
    openapi_report.show_tools(mapped)
    openapi_report.show_skipped(mapped)
    terminal.say(openapi_report.summary(mapped))
    terminal.say(f"Calls go to {flat(mapped.base_url, _SHOWN_CHARS)}.")
    if schemes := _missing(mapped):
        variable = f"{name.upper().replace('-', '_')}_TOKEN"
        given = f'"credentials": {{ "{schemes[0]}": "${{{variable}}}" }}'
        terminal.say(f"For the operations that need credentials, add {given} to the entry.")


def _missing(mapped: MappedDocument) -> list[str]:
    """The security schemes of the operations that are skipped for lack of a credential."""
    found = re.findall(r"the credential (\S+) \(", " ".join(by_reason(mapped.left_out)))
    return list(dict.fromkeys(found))
