"""What servers listed last, kept on disk: one file each, in a folder of this user alone.

Bounded in bytes and files. A folder or file that others may write is not used. Must not: hold a secret; the name of a file is a hash.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from pactgate.config.file_access import is_private_folder, other_writers, read_regular_file, replacing
from pactgate.config.problems import UnreadableError
from pactgate.config.server_settings import ServerConfig
from pactgate.protocol.messages import encode_json

MAX_BYTES: Final = 16 * 1024 * 1024
MAX_FILES: Final = 1000
_FOLDER: Final = "pactgate/lists"


class KnownLists:
    """The files of one configuration. Every method may wait for the disk."""

    def __init__(self, environ: Mapping[str, str], config: str | None) -> None:
        home = environ.get("XDG_STATE_HOME") or os.path.join(environ.get("HOME") or "", ".local/state")
        self._folder = Path(home) / _FOLDER if os.path.isabs(home) else None
        self._config = os.path.abspath(config) if config is not None else ""
        self.offered = ""
        """What the only client of this run offers, as JSON: servers may list other tools for it."""

    def are_kept(self, config: ServerConfig) -> bool:
        """Whether the lists of a server are kept: what takes time to start or to reach, and is the same server in the next run.

        Not those of our own servers: their tools have contracts, which only they themselves may state.
        """
        return config.start == "lazy" or (bool(self._config) and bool(config.command or config.url))

    def read(self, server: str, identity: Sequence[str]) -> bytes | None:
        """What was written for a server with this command line; None if there is nothing that can be used."""
        if self._folder is None or not is_private_folder(self._folder):
            return None
        path = self._path(self._folder, server, identity)
        try:
            data = None if other_writers(path) is not None else read_regular_file(path, MAX_BYTES + 1)
        except UnreadableError:
            return None
        return data if data and len(data) <= MAX_BYTES else None

    def write(self, server: str, identity: Sequence[str], data: bytes) -> None:
        """Replace what is known of a server. Where that fails, the server is started at the next start of the gateway."""
        if self._folder is None or len(data) > MAX_BYTES:
            return
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not is_private_folder(self._folder):
                return
            self._make_room(self._folder)
            with replacing(self._path(self._folder, server, identity)) as file:
                file.write(data)

    def _path(self, folder: Path, server: str, identity: Sequence[str]) -> Path:
        key = hashlib.sha256(
            encode_json([self._config, server, list(identity), *filter(None, [self.offered])])
        ).hexdigest()
        return folder / f"{key[:32]}.json"

    def _make_room(self, folder: Path) -> None:
        files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in files[: len(files) - MAX_FILES + 1] if len(files) >= MAX_FILES else ():
            path.unlink(missing_ok=True)
