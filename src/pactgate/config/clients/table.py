"""The clients that `pactgate import` and `pactgate connect` know: one row of `clients.toml` each.

Must not: read a client's file (`client_file.py` does), or know what an entry means (`dialect.py` does).
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from pactgate.config.problems import nearest

Key = tuple[str, ...]


class Client(Struct, frozen=True, forbid_unknown_fields=True):
    """One row. `clients.toml` says what each member means."""

    id: str
    title: str
    key: Key
    user: tuple[str, ...] = ()
    linux: tuple[str, ...] = ()
    macos: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()
    home: str | None = None
    project: tuple[str, ...] = ()
    newer_key: Key | None = None
    local_key: Key | None = None
    as_list: bool = False
    url: str | None = None
    fixed: dict[str, Any] = {}
    headers: Key = ()
    variable: str | None = None
    token_variable: str | None = None
    inputs: bool = False
    dollar: bool = False
    program: Literal["usual", "array", "goose"] = "usual"
    program_fixed: dict[str, Any] = {}
    import_only: bool = False

    def user_files(self, environ: Mapping[str, str], system: str = sys.platform) -> list[Path]:
        """Where the user's file may be, the usual place first."""
        home = environ.get("HOME") or environ.get("USERPROFILE") or os.path.expanduser("~")
        names = {"darwin": self.macos, "win32": self.windows}.get(system, self.linux) or self.user
        places = [
            name.replace("{config}", _config_folder(home, environ, system)).replace("~", home, 1) for name in names
        ]
        if self.home and (folder := environ.get(self.home)):
            places = [os.path.join(folder, os.path.basename(place)) for place in places]
        return [Path(place) for place in places]

    def project_files(self, folder: Path) -> list[Path]:
        return [folder / name for name in self.project]


@cache
def clients() -> tuple[Client, ...]:
    """All rows, in their order."""
    rows = tomllib.loads(files(__package__).joinpath("clients.toml").read_text(encoding="utf-8"))
    return msgspec.convert(rows["client"], tuple[Client, ...])


def find_client(name: str) -> Client | str:
    """The client of this id, or the id that was probably meant (empty if none was)."""
    known = {client.id: client for client in clients()}
    return known.get(name) or nearest(name, known) or ""


def _config_folder(home: str, environ: Mapping[str, str], system: str) -> str:
    if system == "darwin":
        return f"{home}/Library/Application Support"
    if system == "win32":
        return environ.get("APPDATA") or f"{home}/AppData/Roaming"
    return environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
