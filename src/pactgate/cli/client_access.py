"""How a client that `pactgate connect` connects gets into a gateway that wants a token: by a key of its own, in its own place for secrets.

Most clients take it from a variable of their environment; VS Code asks its user once and keeps the answer; some can have it only in their
file. Who sets `PACTGATE_TOKEN` chooses the token, and no key is made. Must not: write a key anywhere but into such a file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from pactgate.cli import terminal
from pactgate.cli.config_file import load_config
from pactgate.cli.errors import CommandError
from pactgate.config.clients.dialect import to_address, with_token
from pactgate.config.clients.table import Client
from pactgate.core.failures import GatewayFailure
from pactgate.state.key_file import KeyFile, KeyRing, add_key, revoke_key

TOKEN_VARIABLE: Final = "PACTGATE_TOKEN"
INPUT_ID: Final = "pactgate-token"
_SCHEME: Final = "Bearer "


class MadeKey(NamedTuple):
    """A key that was made for a client, by its file and its id."""

    file: str
    id: str


class ClientAccess:
    """The token of one client. `variable` is where it takes it from, None where it does not take it from its environment."""

    def __init__(self, client: Client, config: Path, held: str | None) -> None:
        given = os.environ.get(TOKEN_VARIABLE)
        self.made: MadeKey | None = None
        self.token = given or held
        self.is_asked_for = client.inputs
        own = f"PACTGATE_{client.id.upper().replace('-', '_')}_KEY"
        has_variable = not self.is_asked_for and bool(client.variable or client.token_variable)
        self.variable = (TOKEN_VARIABLE if given else own) if has_variable else None
        self._client = client
        self._config = config
        self._shown = ""

    @classmethod
    def of(cls, client: Client, config: Path, entry: Mapping[str, Any]) -> ClientAccess:
        """`entry` is what the file of the client has already."""
        held: Any = entry
        for key in (*client.headers, "Authorization"):
            held = held.get(key) if isinstance(held, Mapping) else None
        is_literal = isinstance(held, str) and held.startswith(_SCHEME) and "$" not in held and "{" not in held
        return cls(client, config, held.removeprefix(_SCHEME) if is_literal else None)

    @property
    def is_in_file(self) -> bool:
        return not self.is_asked_for and self.variable is None

    @property
    def shown_key(self) -> str | None:
        """The key, where somebody has to put it somewhere."""
        return self._shown or None

    def entry(self, address: str) -> dict[str, Any]:
        plain = to_address(self._client, address, self.variable)
        if self.is_asked_for:
            return with_token(self._client, plain, f"${{input:{INPUT_ID}}}")
        return with_token(self._client, plain, self.token or "KEY") if self.is_in_file else plain

    def shown(self, entry: dict[str, Any]) -> dict[str, Any]:
        """The entry without a token."""
        return with_token(self._client, entry, "KEY") if self.is_in_file else entry

    def require_token(self, *, is_shared_file: bool) -> None:
        """Make a key for a client whose file needs it. Raises CommandError where it has one that nobody knows any more, and for the
        file of a project, which others get to see."""
        if is_shared_file:
            title = self._client.title
            hint = f"Leave out --project: then it is in the file of the user. Or use --stdio: {title} starts the gateway and needs none."
            raise CommandError(
                f"{title} can have its token only in this file, and the file of a project is shared.", hint
            )
        self.make_key()
        if self.token is None:
            raise CommandError(
                f"{self._client.title} has a key already, and can only have it in its file.",
                f"Set {TOKEN_VARIABLE} to it, or to a new one: `pactgate keys rotate {self._client.id}`.",
            )

    def make_key(self) -> None:
        """Make a key, unless there is a token, or a key of this name."""
        if self.token is not None:
            return
        file = load_config(self._config, only=("auth.keys",)).key_file
        assert file is not None, "a configuration file has keys beside it"
        texts: list[str] = []

        def add(ring: KeyRing) -> KeyRing:
            now = time.time()
            if any(key.is_live(now) for key in ring.named(self._client.id)):
                return ring
            after, text = add_key(ring, name=self._client.id, now=now, expires=None, groups=(), roles=())
            texts.append(text)
            return after

        try:
            after = KeyFile(file).change(add)
        except GatewayFailure as failure:
            raise CommandError(failure.message, exit_code=1) from None
        if texts:
            self.token, self.made = texts[0], MadeKey(file, after.keys[-1].id)
            self._shown = "" if self.is_in_file else texts[0]

    def tell(self) -> None:
        """Say where the token has to go, and print a new key, this once."""
        title, name = self._client.title, self._client.id
        if self.is_in_file:
            if self.made is not None:
                terminal.say(f"{title} has an API key of its own there, {name}; only you can read the file.")
        elif not self._shown:
            where = f"Set {self.variable} where {title} starts" if self.variable else f"{title} asks for the token once"
            terminal.say(f"{where}; `pactgate keys rotate {name}` replaces a key that is lost.")
        elif self.variable is None:
            terminal.say_note(f"{title} asks for its API key once. It is shown only now:")
            print(self._shown, flush=True)
        else:
            terminal.say_note(
                f"{title} takes its API key from its environment. It is shown only now; set it where {title} starts:"
            )
            print(f"export {self.variable}={self._shown}", flush=True)


def end_key(file: str, id_: str) -> bool:
    """Revoke a key that `connect` has made. Whether it was there."""
    with suppress(GatewayFailure):
        KeyFile(file).change(partial(revoke_key, name_or_id=id_, now=time.time()))
        return True
    return False
