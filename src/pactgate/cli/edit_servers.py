"""`pactgate remove`, `enable`, `disable` and `reload`: change one entry of the configuration file, or have a gateway read it again.

Everything else in the file stays as it is, comments included. A running gateway takes the change over by itself. Must not: start a server.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from pactgate.cli import terminal
from pactgate.cli.completions import server_ids
from pactgate.cli.config_file import find_config
from pactgate.cli.errors import CommandError
from pactgate.cli.running_gateways import running_gateways
from pactgate.cli.shared_options import config_option
from pactgate.config.edit import SERVER_KEYS, put, value_at
from pactgate.config.edit import remove as remove_key
from pactgate.config.file_access import read_regular_file
from pactgate.config.load import MAX_FILE_BYTES
from pactgate.config.persist import keys_in_file, replace_file
from pactgate.config.problems import ConfigFindings, EditError, UnreadableError
from pactgate.config.reader import FORMATS, Format, read

Edit = Callable[[str, Format, Sequence[str], dict[str, Any]], str]
"""From the text of the file, its format, the place of the entry and the entry to the new text."""


@click.command()
@click.argument("name", shell_complete=server_ids)
@config_option
def remove(*, name: str, config: str | None) -> int:
    """Remove a server from the configuration."""
    return _change(name, config, lambda text, form, place, _: remove_key(text, form, place), "Removed from")


@click.command()
@click.argument("name", shell_complete=server_ids)
@config_option
def enable(*, name: str, config: str | None) -> int:
    """Let the gateway use a server again."""
    return _change(name, config, _enabled, "Enabled in")


@click.command()
@click.argument("name", shell_complete=server_ids)
@config_option
def disable(*, name: str, config: str | None) -> int:
    """Keep a server in the configuration without using it."""
    return _change(name, config, _disabled, "Disabled in")


@click.command()
@config_option
def reload(*, config: str | None) -> int:
    """Have the running gateway read its configuration now, also where nothing in the file has changed."""
    path = find_config(config)
    wanted = None if path is None else str(path.resolve())
    found = [gateway for gateway in running_gateways() if wanted is not None and gateway.config == wanted]
    if not found:
        raise CommandError(f"No gateway of {path or 'this folder'} runs.", "`pactgate serve` starts one.", exit_code=1)
    for gateway in found:
        os.kill(gateway.pid, signal.SIGHUP)
        terminal.say(f"The gateway at {gateway.url} reads {path} again; its log says what changed.")
    return 0


def _enabled(text: str, form: Format, place: Sequence[str], entry: dict[str, Any]) -> str:
    for key in ("enabled", "disabled"):
        if entry.get(key) is (key == "disabled"):
            text = remove_key(text, form, [*place, key])
    return text


def _disabled(text: str, form: Format, place: Sequence[str], entry: dict[str, Any]) -> str:
    """In the spelling of the entry: clients write `disabled`."""
    if "disabled" in entry:
        return text if entry["disabled"] is True else put(text, form, [*place, "disabled"], value=True)
    return put(text, form, [*place, "enabled"], value=False)


def _change(name: str, given: str | None, edit: Edit, done: str) -> int:
    path = find_config(given)
    if path is None:
        raise CommandError("There is no configuration.", "Give one with --config.")
    text, form = _read(path)
    values = read(text, form, ConfigFindings(path.name))
    place = keys_in_file((SERVER_KEYS[0], name), values if isinstance(values, dict) else {})
    entry = value_at(values, place)
    if not isinstance(entry, dict):
        names = [one for key in SERVER_KEYS for one in value_at(values, [key]) or ()]
        raise CommandError(f"There is no server {name!r} in {path}.", f"Servers: {', '.join(names) or 'none'}.")
    try:
        changed = edit(text, form, place, entry)
    except EditError as problem:
        raise CommandError(problem.why, problem.lines) from None
    if changed == text:
        terminal.say(f"Nothing to do: {name} in {path} is so already.")
        return 0
    try:
        replace_file(path, changed)
    except OSError as problem:
        raise CommandError(f"{path} can't be written: {problem.strerror}.", exit_code=1) from None
    terminal.say(f"{done} {path}: {name}. A running gateway takes it over by itself.")
    return 0


def _read(path: Path) -> tuple[str, Format]:
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise CommandError("The format of this file is unknown.", f"Its name must end with {', '.join(FORMATS)}.")
    try:
        return read_regular_file(path, MAX_FILE_BYTES).decode("utf-8-sig"), form
    except (UnreadableError, UnicodeDecodeError) as problem:
        raise CommandError(f"{path} can't be read: {problem}.") from None
