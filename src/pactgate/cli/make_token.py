"""`pactgate token`: a token that nobody can guess, and what to write into the configuration for it. Must not: write it anywhere."""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Final

import click

from pactgate.cli import terminal
from pactgate.cli.shared_options import json_option
from pactgate.config.sections.auth import HASHED

_TOKEN_BYTES: Final = 32


@click.command("token")
@click.argument("name", default="NAME", required=False)
@json_option
def make_token(*, name: str, as_json: bool) -> int:
    """Make a token for auth.tokens of the configuration, and print it, this once.

    NAME is its holder. The file needs only the digest, which opens nothing. `pactgate keys` makes keys without a change of the file.
    """
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    digest = f"{HASHED}{hashlib.sha256(token.encode()).hexdigest()}"
    if as_json:
        terminal.say_json({"token": token, "digest": digest})
        return 0
    section = {"auth": {"tokens": {name: {"token": digest}}}}
    terminal.say_note(f"For the configuration:\n  {json.dumps(section)[1:-1]}")
    terminal.say_note("The token itself, shown only now; clients send it as `Authorization: Bearer TOKEN`:")
    print(token, flush=True)
    return 0
