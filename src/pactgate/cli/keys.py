"""`pactgate keys`: make, list, replace and revoke API keys. Changes the file of keys, which running gateways notice within a second, and
tells replicas of revoked ones.

A key is printed once, alone on standard output, so that a script can take it. Must not: write a key anywhere else.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial, wraps
from typing import Any, Final

import click
from msgspec.structs import replace

from pactgate.cli import terminal
from pactgate.cli.config_file import find_config, load_config
from pactgate.cli.errors import CommandError
from pactgate.cli.shared_options import config_option, json_option
from pactgate.cli.shared_revocations import ends_elsewhere, share_revoked
from pactgate.cli.table import Column, Styled, show_table
from pactgate.config.sections.auth import RESERVED, ROLES, expiry_time
from pactgate.core.display import visible
from pactgate.core.failures import GatewayFailure
from pactgate.state.key_file import ApiKey, KeyFile, KeyRing, add_key, revoke_key, rotate_key

_EXAMPLES: Final = """\
\b
Examples:
  pactgate keys add ci --expires 90d    a key for ci, valid for 90 days
  pactgate keys add ops --roles admin   a key that may manage the gateway
  pactgate keys rotate ci --overlap 1h  a new key; the old one ends in an hour
  pactgate keys revoke ci               end every key of ci at once
"""
_UNITS: Final = {"m": 60, "h": 3600, "d": 86400}
_DURATION: Final = re.compile(r"([0-9]{1,6})([mhd])")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,49}")
_MAX_NAMES: Final = 20
_OVERLAP: Final = "24h"

_name_argument: Final = click.argument("name")
_expires_option: Final = click.option(
    "--expires", metavar="WHEN", help="How long it is valid (90d, 12h), or its last day (2026-12-31)."
)


@click.group(epilog=_EXAMPLES)
def keys() -> None:
    """Make, list, rotate and revoke API keys of clients."""


def _with_file(function: Callable[..., int]) -> Callable[..., int]:
    """Add `--config` and `--json`, and call the function with the file of keys of that configuration."""

    @wraps(function)
    def run(*, config: str | None, **options: object) -> int:
        path = find_config(config)
        if path is None:
            hint = "Write one first (`pactgate add` begins one), or name it with --config."
            raise CommandError("There is no configuration here, and keys belong to one.", hint)
        file = load_config(path, only=("auth.keys",)).key_file
        assert file is not None
        keys = KeyFile(file)
        try:
            before = keys.read()
            code = function(keys, **options)
            after = keys.read()
        except GatewayFailure as failure:
            raise CommandError(failure.message, exit_code=1) from None
        if after is not None and after.revoked != (before.revoked if before else ()):
            share_revoked(path, after)
        return code

    return config_option(json_option(run))


@keys.command(epilog=_EXAMPLES)
@_name_argument
@click.option("--groups", metavar="A,B", help="Groups of the caller.")
@click.option("--roles", metavar="A,B", help=f"Roles of the caller: {', '.join(ROLES)}.")
@_expires_option
@_with_file
def add(file: KeyFile, *, name: str, groups: str | None, roles: str | None, expires: str | None, as_json: bool) -> int:
    """Make a key and print it, this once. NAME says whose it is: in logs, limits and records the caller is key:NAME."""
    _require_name(name)
    edit = partial(
        add_key,
        name=name,
        now=time.time(),
        expires=_end(expires),
        groups=_names(groups, "--groups"),
        roles=_roles(roles),
    )
    is_first = file.read() is None
    made = _make(file, edit)
    if is_first and not as_json:
        terminal.say_note(
            f"{file.path} is new: from now on clients need a token or a key, unless auth.anonymous is true."
        )
    return _show_key(made, name, as_json=as_json)


@keys.command(epilog=_EXAMPLES)
@_name_argument
@_expires_option
@click.option(
    "--overlap",
    metavar="TIME",
    default=_OVERLAP,
    help=f"How long the old key stays valid. Default {_OVERLAP}; 0m: not.",
)
@_with_file
def rotate(file: KeyFile, *, name: str, expires: str | None, overlap: str, as_json: bool) -> int:
    """Replace a key; the old one stays valid for a while.

    The new key of NAME has the groups and roles of the old one. Without --expires the new key is valid for as long as the old one was.
    """
    overlap_s = _duration_s(overlap)
    if overlap_s is None:
        raise CommandError(f"--overlap {visible(overlap)} is not a time.", "Write it as 24h, 30m or 7d.")
    edit = partial(rotate_key, name=name, now=time.time(), expires=_end(expires), overlap_s=overlap_s)
    made = _make(file, edit)
    return _show_key(made, name, as_json=as_json)


@keys.command(epilog=_EXAMPLES)
@click.argument("name_or_id", metavar="NAME|ID")
@_with_file
def revoke(file: KeyFile, *, name_or_id: str, as_json: bool) -> int:
    """End every key of a name, or the one key with an id.

    Running gateways refuse them within a second, replicas that share a store within two, also those with a file of their own.
    """
    before = file.read()
    after = file.change(lambda ring: revoke_key(ring, name_or_id, now=time.time()))
    gone = [key.id for key in (before.keys if before else ()) if key not in after.keys]
    if as_json:
        terminal.say_json({"revoked": gone})
    else:
        terminal.say(f"Revoked: {', '.join(gone)}.")
    return 0


@keys.command("list", epilog=_EXAMPLES)
@_with_file
def list_(file: KeyFile, *, as_json: bool) -> int:
    """List the keys, without what would open anything. Where replicas share a store, also which of them other machines have revoked."""
    ring = file.read()
    found = () if ring is None else ring.keys
    config = find_config(click.get_current_context().params["config"])
    ends = ends_elsewhere(config, [key.id for key in found]) if config is not None and found else {}
    found = tuple(
        replace(key, expires=min(ends[key.id], key.expires or ends[key.id])) if ends.get(key.id) else key
        for key in found
    )
    now = time.time()
    if as_json:
        rows = [{**_as_dict(key, now), "revoked": ends.get(key.id) == 0} for key in found]
        terminal.say_json({"file": file.path, "keys": rows})
    elif found:
        show_table(_COLUMNS, [_row(key, now, is_revoked=ends.get(key.id) == 0) for key in found])
    else:
        terminal.say(f"There are no keys in {file.path}. `pactgate keys add NAME` makes one.")
    return 0


_COLUMNS: Final = (
    Column("ID"),
    Column("NAME", is_long=True),
    Column("GROUPS", is_long=True),
    Column("ROLES"),
    Column("CREATED"),
    Column("EXPIRES"),
    Column("LAST USED"),
)


def _row(key: ApiKey, now: float, *, is_revoked: bool) -> tuple[Any, ...]:
    end = "never" if key.expires is None else _time(key.expires)
    expires = end if key.is_live(now) else Styled(f"{end} (expired)", "red")
    if is_revoked:
        expires = Styled("revoked elsewhere", "red")
    names = (", ".join(key.groups) or "-", ", ".join(key.roles) or "-")
    return (key.id, key.name, *names, _time(key.created), expires, key.last_used or "never")


def _as_dict(key: ApiKey, now: float) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "groups": list(key.groups),
        "roles": list(key.roles),
        "created": _time(key.created),
        "expires": None if key.expires is None else _time(key.expires),
        "expired": not key.is_live(now),
        "lastUsed": key.last_used,
    }


def _make(file: KeyFile, edit: Callable[[KeyRing], tuple[KeyRing, str]]) -> tuple[ApiKey, str]:
    """Apply an edit that makes one key, and return it with its text."""
    texts: list[str] = []

    def apply(ring: KeyRing) -> KeyRing:
        after, text = edit(ring)
        texts.append(text)
        return after

    return file.change(apply).keys[-1], texts[-1]


def _show_key(made: tuple[ApiKey, str], name: str, *, as_json: bool) -> int:
    key, text = made
    if as_json:
        terminal.say_json({**_as_dict(key, time.time()), "key": text})
        return 0
    end = "" if key.expires is None else f", valid until {_time(key.expires)}"
    terminal.say_note(f"The key of {name}{end}. It is shown only now; send it as `Authorization: Bearer KEY`:")
    print(text, flush=True)
    return 0


def _require_name(name: str) -> None:
    if name in RESERVED:
        raise CommandError(f"{name} is the name of clients without a token of their own.", "Choose another.")
    if not _NAME.fullmatch(name):
        hint = "A name has up to 50 letters, digits, dots, hyphens and underscores; a letter or digit first."
        raise CommandError(f"{visible(name)} can't be the name of a key.", hint)


def _names(text: str | None, option: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(filter(None, (part.strip() for part in (text or "").split(",")))))
    for name in names:
        if not _NAME.fullmatch(name):
            raise CommandError(f"{option}: {visible(name)} can't be a name.", "Separate names with commas.")
    if len(names) > _MAX_NAMES:
        raise CommandError(f"{option} has {len(names)} names; {_MAX_NAMES} are allowed.")
    return names


def _roles(text: str | None) -> tuple[str, ...]:
    names = _names(text, "--roles")
    for name in names:
        if name not in ROLES:
            hint = f"Roles: {', '.join(ROLES)}. A caller without a role may call every tool of every server."
            raise CommandError(f"Nothing refers to the role {name}.", hint)
    return names


def _end(text: str | None) -> float | None:
    if text is None:
        return None
    duration_s = _duration_s(text)
    end = time.time() + duration_s if duration_s is not None else expiry_time(text)
    if math.isnan(end):
        raise CommandError(f"--expires {visible(text)} is not a time.", "Write it as 90d, 12h or 2026-12-31.")
    if end <= time.time():
        raise CommandError(f"--expires {visible(text)} is over.", "Give a time to come.")
    return end


def _duration_s(text: str) -> int | None:
    match = _DURATION.fullmatch(text)
    return None if match is None else int(match[1]) * _UNITS[match[2]]


def _time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%MZ")
