"""Loads file, environment and command line into one `Config`, or raises one `ConfigurationError` with every problem.

Reads one regular file, and the files of secrets it names, each of bounded size. Must not: start a process, open a socket, resolve a name
or import a server's code; an unreachable server is not a problem of its configuration (D14). Enforces S4/F4, S4/UNDECIDED-2.
"""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import inspect

from pactgate.config.clients.foreign import adapt, variables_of_editors
from pactgate.config.definition_lock import Pins, lock_path, read_lock
from pactgate.config.file_access import SecretFiles, hint_for_readers, other_writers, read_regular_file
from pactgate.config.model import Config, ConfigFile, Sections
from pactgate.config.problems import (
    ConfigFindings,
    ConfigProblem,
    ConfigurationError,
    LineIndex,
    UnreadableError,
    ValueFault,
    spell,
)
from pactgate.config.reader import FORMATS, read
from pactgate.config.sections.auth import check_auth
from pactgate.config.sections.cache import check_cache
from pactgate.config.sections.console import check_console
from pactgate.config.sections.effects import warn_of_own_files
from pactgate.config.sections.listen import ListenSection, check_listen, warn_of_plain_tokens
from pactgate.config.sections.permissions import check_permissions
from pactgate.config.sections.sign_in import check_exchanges
from pactgate.config.sections.state import KEY_VARIABLE, check_state, warn_of_state
from pactgate.config.sections.telemetry import Telemetry, is_disabled, telemetry_of
from pactgate.config.sections.views import check_views
from pactgate.config.server_entries import is_enabled, settle
from pactgate.config.validate import SERVER_LISTS, Validation
from pactgate.config.value_checks import is_loopback

MAX_FILE_BYTES: Final = 1024 * 1024
COMMAND_LINE: Final = "command line"
ENV_FILE: Final = "envFile"
ENVIRONMENT: Final = "the environment"
_STEM: Final = "pactgate"
_PERMISSIONS: Final = ("callers", "permissions", "views")
_KEYS: Final = ".keys"
_CREDENTIALS: Final = ".credentials"


def find(folder: Path, environ: Mapping[str, str]) -> Path | None:
    """The configuration file of a folder, else of the user; None when there is neither. Two in one place raise."""
    home = environ.get("XDG_CONFIG_HOME") or (os.path.join(environ["HOME"], ".config") if environ.get("HOME") else None)
    places = [folder, *([Path(home) / _STEM] if home and os.path.isabs(home) else [])]
    for place in places:
        present = [path for suffix in FORMATS if os.path.lexists(path := place / f"{_STEM}{suffix}")]
        if len(present) > 1:
            names = ", ".join(path.name for path in present)
            raise ConfigurationError(
                [ConfigProblem("", f"There are several configurations: {names}.", "Keep one.", file=str(place))]
            )
        if present:
            return present[0]
    return None


def load(
    path: Path | None,
    *,
    environ: Mapping[str, str],
    overrides: Mapping[str, Any] | None = None,
    only: Collection[str] | None = None,
) -> Config:
    """The configuration in `path`, or the defaults when there is none.

    `overrides` are flags by the dotted name of their setting, as `{"listen.port": 0}`; None means that the flag was not given.
    With `only`, the other sections have their defaults, so that a command needs none of their variables; `auth.keys` is one setting.
    A server whose variables are not set is `unresolved` and stops nothing else.
    """
    found, flags = ConfigFindings(str(path) if path else ""), ConfigFindings(COMMAND_LINE)
    root = _read_file(path, found) if path else {}
    if only is not None and root is not None:
        root = _part(root, {*only, ENV_FILE})
    folder = os.path.abspath(path.parent if path else ".")
    if root is not None:
        root = adapt(root, found, frozenset(ConfigFile.__struct_encode_fields__))
    files = SecretFiles(folder)
    environ = ChainMap(
        cast("dict[str, str]", environ), _variables_of_file(root, files, found), variables_of_editors(folder, environ)
    )
    reading = Validation(found, environ, folder, files.read)
    if root is not None:
        _add_key(root, environ)
    settings = _settings(reading, root, found, files) if root is not None else {}
    giving = Validation(flags, environ)
    given = giving.take(_tree(overrides or {}), kind_of(Sections))
    variables = ConfigFindings(ENVIRONMENT)
    around = Validation(variables, {})
    telemetry = around.take(
        telemetry_of(environ, variables, has_endpoint="endpoint" in settings.get("telemetry", {})), kind_of(Telemetry)
    )
    if not found.problems and not flags.problems and not variables.problems:
        _merge(settings, given)
        settings["telemetry"] = {**telemetry, **settings.get("telemetry", {})}
        if is_disabled(environ):
            settings["telemetry"] = {}
        _require_resource(settings, found, is_whole=only is None)
    if not found.problems and not flags.problems and not variables.problems:
        _warn(settings, found, is_whole=only is None)
        if path is not None and reading.written_secrets and (hint := hint_for_readers(path)):
            message = "Every user may read this file, and this is a secret."
            found.warn(reading.written_secrets[0], message, hint, at_value=True)
    mode = settings.get("lock", {}).get("mode", "off")
    pins = _pins(path, mode, found) if mode != "off" else None
    unresolved = _of_enabled(reading.unresolved, settings.get("servers", {}))
    if problems := found.problems + flags.problems + variables.problems:
        raise ConfigurationError([*problems, *unresolved])
    config = msgspec.convert(settings, Config)
    known_secrets = {*reading.secrets, *giving.secrets, *around.secrets}
    secrets = tuple(sorted(known_secrets, key=lambda secret: (-len(secret), secret)))
    key_file = config.auth.keys or (os.path.abspath(path.with_suffix(_KEYS)) if path else None)
    config = msgspec.structs.replace(
        config,
        secrets=secrets,
        key_file=key_file,
        credential_file=os.path.abspath(path.with_suffix(_CREDENTIALS)) if path else None,
        has_key_file=config.auth.keys is not None or (key_file is not None and os.path.lexists(key_file)),
        secret_files=tuple(files.names),
        pins=pins,
        unresolved=unresolved,
        rule_places=_rule_places(config, path, found),
        origins=_origins(root or {}, telemetry, given, found),
        file=str(path) if path else None,
    )
    warn_of_own_files(config.servers, config.private_paths, found)
    if config.state.is_shared and config.needs_token:
        message = "Each replica generates a token of its own, and clients would need all of them."
        found.warn(("auth", "tokens"), message, "Add one that all replicas know.")
    warn_of_plain_tokens(config.listen, wants_token=not config.allows_anonymous, found=found)
    return msgspec.structs.replace(config, warnings=tuple(found.warnings))


def _pins(path: Path | None, mode: str, found: ConfigFindings) -> Pins | None:
    """What the lock file says. Without it nothing can be held against it, so `hold` and `refuse` do not start."""
    try:
        if path is None:
            raise UnreadableError(
                "There is no configuration file to have a lock file beside it.", "Start with --config."
            )
        file = lock_path(path)
        if not file.exists():
            raise UnreadableError(f"There is no lock file {file.name} beside this file.", "`pactgate lock` writes it.")
        return {id_: server.pins() for id_, server in read_lock(file).servers.items()}
    except UnreadableError as problem:
        add = found.warn if mode == "report" else found.add
        add(("lock", "mode"), problem.message, problem.hint, at_value=True)
        return {} if mode == "report" else None


def _part(root: dict[str, Any], only: Collection[str]) -> dict[str, Any]:
    """The sections of a file that are named, or one setting of them."""
    part: dict[str, Any] = {}
    for name in only:
        section, _, setting = name.partition(".")
        if section in root:
            given = root[section]
            whole = not setting or not isinstance(given, dict)
            part[section] = given if whole else {key: one for key, one in given.items() if key == setting}
    return part


@cache
def kind_of(struct: type[msgspec.Struct]) -> inspect.Type:
    """The type `Validation` validates values against."""
    return inspect.type_info(struct)


def _read_file(path: Path, found: ConfigFindings) -> dict[str, Any] | None:
    try:
        root = read(_read_text(path, found), FORMATS[path.suffix.lower()], found)
    except UnreadableError as problem:
        found.add_at(problem.place, (), problem.message, problem.hint)
        return None
    if isinstance(root, dict):
        return root
    if () in found.positions:
        place = found.lines.place(found.positions[()].start)
        found.add_at(place, (), "A configuration is an object.", 'It begins like {"mcpServers": {...}}.')
    return None


def _read_text(path: Path, found: ConfigFindings) -> str:
    if path.suffix.lower() not in FORMATS:
        hint = f"Its name must end with {', '.join(FORMATS)}."
        raise UnreadableError("The format of this file is unknown.", hint)
    data = read_regular_file(path, MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise UnreadableError(f"The file is larger than {MAX_FILE_BYTES} bytes.", "Is it the right file?")
    writers = other_writers(path)
    if writers is not None:
        fault = ValueFault(f"{writers.who} may write this file, and it names programs to start.", writers.hint)
        if writers.is_everybody:  # who writes this file decides which programs run as this user
            raise UnreadableError(*fault)
        found.warn((), *fault)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig")
        place = LineIndex(before).place(len(before))
        raise UnreadableError("This is not UTF-8 text.", "Save the file as UTF-8.", place) from None


def _variables_of_file(root: dict[str, Any] | None, files: SecretFiles, found: ConfigFindings) -> dict[str, str]:
    """What `envFile` of the configuration gives to its `${NAME}`."""
    name = (root or {}).get(ENV_FILE)
    if not isinstance(name, str) or not name:
        return {}
    variables = files.variables(name)
    if isinstance(variables, ValueFault):
        found.add((ENV_FILE,), *variables, at_value=True)
        return {}
    if hint := hint_for_readers(os.path.join(files.folder, name)):
        found.warn((ENV_FILE,), "Every user may read this file.", hint, at_value=True)
    return variables


def _settings(reading: Validation, root: dict[str, Any], found: ConfigFindings, files: SecretFiles) -> dict[str, Any]:
    """The settings of a file, with its server entries normalized."""
    settings: dict[str, Any] = reading.take(root, kind_of(ConfigFile))
    settings.pop(ENV_FILE, None)
    lists = [key for key in SERVER_LISTS if key in root]
    if len(lists) > 1:
        found.add(("servers",), "mcpServers and servers are both given.", "Keep mcpServers.")
    servers: dict[str, Any] = {}
    for key in lists:
        entries = settings.pop(key, {})
        for server_id, entry in entries.items():
            reading.take_variables((key, server_id), entry, files)
            missing = reading.unresolved.get(server_id)
            if missing is None:
                servers[server_id] = settle(server_id, entry, root[key][server_id], (key, server_id), found)
            else:
                servers[server_id] = {
                    "id": server_id,
                    "enabled": is_enabled(entry),
                    "unresolved": " ".join(problem.message for problem in missing),
                }
    settings["servers"] = servers
    check_auth(settings.get("auth", {}), root.get("auth"), found)
    check_state(settings.get("state", {}), found)
    check_listen(settings.get("listen", {}), found)
    check_console(settings, found)
    check_together(settings, found)
    if not any(
        problem.path.startswith(_PERMISSIONS) for problem in found.problems
    ):  # what was refused is not in `settings`
        check_permissions(settings, found)
        check_views(settings, found)
    return settings


def _rule_places(config: Config, path: Path | None, found: ConfigFindings) -> tuple[str, ...]:
    """Where the rules stand, as `pactgate.json:14:5`: records of calls name the rule that decided."""
    places = [found.place_of(("permissions", at)) for at in range(len(config.permissions))]
    name = "" if path is None else path.name
    return tuple(name if place is None else f"{name}:{place.line}:{place.column}" for place in places)


def _origins(
    root: Mapping[str, Any], around: Mapping[str, Any], given: Mapping[str, Any], found: ConfigFindings
) -> dict[str, str]:
    """Where each setting comes from that is not the default; the last of several that give it decides."""
    origins = {f"telemetry.{name}": ENVIRONMENT for name in around}
    file = os.path.basename(found.file)
    for section in Sections.__struct_encode_fields__:
        settings = root.get(section)
        for path in [(section, name) for name in settings] if isinstance(settings, dict) else []:
            place = found.place_of(path)
            origins[spell(path)] = file if place is None else f"{file}:{place.line}"
    return origins | {f"{section}.{name}": COMMAND_LINE for section, settings in given.items() for name in settings}


def _of_enabled(
    unresolved: Mapping[str, list[ConfigProblem]], servers: Mapping[str, dict[str, Any]]
) -> tuple[ConfigProblem, ...]:
    """What is missing for servers that are to run: nobody has to set the variables of a disabled one."""
    return tuple(
        problem
        for id_, problems in unresolved.items()
        if servers.get(id_, {}).get("enabled", True)
        for problem in problems
    )


def check_together(settings: dict[str, Any], found: ConfigFindings) -> None:
    """Check the values of sections against each other, once each of them is valid."""
    check_cache(settings.get("cache", {}), found)


def _warn(settings: dict[str, Any], found: ConfigFindings, *, is_whole: bool) -> None:
    """Warn about what is allowed and unusual."""
    host = settings.get("listen", {}).get("host", ListenSection().host)
    if settings.get("auth", {}).get("anonymous") is True and not is_loopback(host):
        message = f"Everybody who can reach {host} may call every tool."
        hint = "Use auth.tokens, or listen on 127.0.0.1."
        found.warn(("auth", "anonymous"), message, hint, at_value=True)
    _warn_of_private_caches(settings, found)
    warn_of_state(settings.get("state", {}), found)
    for server_id, server in settings["servers"].items():
        if (tools := server.get("tools")) and (writers := other_writers(tools)):
            message = f"{writers.who} may write this file, and the gateway runs it."
            found.warn(("mcpServers", server_id, "tools"), message, writers.hint, at_value=True)
    if found.file and is_whole and not settings["servers"]:
        found.warn(("mcpServers",), "There are no servers.", "Add one under mcpServers.")


def _require_resource(settings: dict[str, Any], found: ConfigFindings, *, is_whole: bool) -> None:
    """Clients elsewhere have to be told the URL that their tokens are for, and people where they sign in: it can't be read off the address
    listened on."""
    listen, auth = settings.get("listen", {}), settings.get("auth", {})
    is_plain = is_loopback(listen.get("host", ListenSection().host)) and not listen.get("tls")
    auths = [server.get("auth") or {} for server in settings.get("servers", {}).values()]
    is_wanted = auth.get("issuers") or any(one.get("who") == "user" for one in auths)
    if is_wanted and not auth.get("resource") and not is_plain:
        found.add(("auth", "resource"), "This is missing.", "Write the URL of /mcp as clients reach it.")
    if is_whole:
        check_exchanges(settings, found)


def _warn_of_private_caches(settings: dict[str, Any], found: ConfigFindings) -> None:
    """Warn where every client session fills a cache of its own: of a server with a session per client nothing is shared."""
    for pattern in settings.get("cache", {}).get("tools", {}):
        server = settings["servers"].get(pattern.partition(".")[0])
        if server is not None and server.get("isolation") == "session":
            message = (
                "Each client session has its own cached results, because each has its own session with the server."
            )
            hint = "Remove it, or set isolation to shared if the server answers all clients alike."
            found.warn(("cache", "tools", pattern), message, hint)


def _add_key(root: dict[str, Any], environ: Mapping[str, str]) -> None:
    """The key of the replicas, where the file has a section `state` without one."""
    state = root.get("state")
    if isinstance(state, dict) and "key" not in state and environ.get(KEY_VARIABLE):
        root["state"] = {**state, "key": f"${{{KEY_VARIABLE}}}"}


def _tree(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Flags as a file would have them."""
    root: dict[str, Any] = {}
    for name, value in overrides.items():
        if value is None:
            continue
        *sections, key = name.split(".")
        table = root
        for section in sections:
            table = table.setdefault(section, {})
        table[key] = value
    return root


def _merge(settings: dict[str, Any], given: dict[str, Any]) -> None:
    for section, flags in given.items():
        settings[section] = {**settings.get(section, {}), **flags}
