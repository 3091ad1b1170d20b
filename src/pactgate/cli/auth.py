"""`pactgate auth`: why a token is or is not accepted by a configuration; sign-ins at servers are in `login.py`. No token is printed."""

from __future__ import annotations

import asyncio
import hashlib
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click

from pactgate.cli import terminal
from pactgate.cli.config_file import find_config, load_config
from pactgate.cli.errors import CommandError
from pactgate.cli.login import rotate_key, status
from pactgate.cli.shared_options import config_option, json_option
from pactgate.config.model import Config
from pactgate.config.sections.oauth import provider_urls

if TYPE_CHECKING:
    from pactgate.core.principal import Principal
    from pactgate.inbound.oauth.explanation import Explanation

_EXAMPLES: Final = """\
\b
Examples:
  pactgate auth explain - < token.txt        read the token from a file
  pbpaste | pactgate auth explain - --json   read it from the clipboard

Exit codes: 0 the token is accepted, 1 it is not, 2 wrong invocation or configuration.
"""
_MAX_TOKEN_CHARS: Final = 65_536
_LABELS: Final = {"mayCall": "may call"}


@click.group()
def auth() -> None:
    """Check a token, and show the sign-ins at servers."""


auth.add_command(status)
auth.add_command(rotate_key)


@auth.command(epilog=_EXAMPLES)
@click.argument("token", metavar="TOKEN|-")
@config_option
@json_option
def explain(*, token: str, config: str | None, as_json: bool) -> int:
    """Say step by step why a token is or is not accepted. `-` reads it from standard input; it is not printed.

    Keys are fetched from the identity provider, and a token that is no JWT is sent to its introspection endpoint.
    """
    if token == "-":
        token = sys.stdin.read(_MAX_TOKEN_CHARS)
    else:
        terminal.warning(
            "Every user of this machine can see the arguments of a command (ps). Use - and standard input."
        )
    token = token.strip().removeprefix("Bearer ").strip()
    if not token:
        raise CommandError("There is no token.", "Give it on standard input: pactgate auth explain - < token.txt")
    settings = load_config(find_config(config), only=("auth", "listen"))
    own = _own_credential(settings, token)
    if own is not None:
        return _say(settings, [own], None, as_json=as_json)
    if not settings.auth.issuers:
        steps = [("form", False, "no token of auth.tokens and no API key, and there are no auth.issuers")]
        return _say(settings, steps, None, as_json=as_json)
    found = asyncio.run(_explain(settings, token))
    steps = [(step.name, step.is_good, step.text) for step in found.steps]
    return _say(settings, steps, None if found.admission is None else found.admission.principal, as_json=as_json)


def _own_credential(settings: Config, token: str) -> tuple[str, bool, str] | None:
    """What is to say about a token of the configuration or an API key."""
    from pactgate.inbound.api_keys import ApiKeys
    from pactgate.inbound.auth import credentials_of
    from pactgate.inbound.credentials import Admission, AuthError, ConfiguredTokens, CredentialSource
    from pactgate.state.key_file import KeyFile

    digest = hashlib.sha256(token.encode()).digest()
    ring = KeyFile(settings.key_file).read() if settings.key_file is not None else None
    sources: dict[str, CredentialSource] = {
        "a token of auth.tokens": ConfiguredTokens(credentials_of(settings), time.time),
        "an API key": ApiKeys(ring, time.time),
    }
    for kind, source in sources.items():
        found = source.find(token, digest, {})
        if isinstance(found, Admission):
            return "form", True, f"{kind}, of {found.principal.subject or found.principal.key}"
        if isinstance(found, AuthError):
            return "form", False, f"{kind}: {found.message}"
    return None


async def _explain(settings: Config, token: str) -> Explanation:
    from pactgate.inbound.oauth.access_tokens import AccessTokens
    from pactgate.inbound.oauth.explanation import explain_token
    from pactgate.upstreams.http.client import HttpClient
    from pactgate.upstreams.http.documents import DocumentClient

    client = HttpClient()
    tokens = AccessTokens(
        settings.auth, DocumentClient(client, "auth.issuers", provider_urls(settings.auth.issuers)).fetch
    )
    try:
        return await explain_token(tokens, token)
    finally:
        tokens.close()
        await client.close()


def _say(settings: Config, steps: list[tuple[str, bool, str]], principal: Principal | None, *, as_json: bool) -> int:
    is_accepted = all(is_good for _, is_good, _ in steps[-1:])
    facts = {} if principal is None else _facts(settings, principal)
    if as_json:
        shown = [{"step": name, "ok": is_good, "text": text} for name, is_good, text in steps]
        terminal.say_json({"accepted": is_accepted, "steps": shown, **facts})
        return 0 if is_accepted else 1
    for name, is_good, text in steps:
        terminal.item(name, "green" if is_good else "red", text, width=14)
    for name, fact in facts.items():
        terminal.item(
            _LABELS.get(name, name), "dim", ", ".join(fact) if isinstance(fact, list) else str(fact), width=14
        )
    terminal.say()
    terminal.say("The token is accepted." if is_accepted else "The token is not accepted.")
    return 0 if is_accepted else 1


def _facts(settings: Config, principal: Principal) -> dict[str, Any]:
    from pactgate.config.sections.oauth import CATEGORIES
    from pactgate.policy.scopes import ScopePolicy

    policy = ScopePolicy(settings.auth.scopes)
    return {
        "subject": principal.shown,
        "client": principal.client_id,
        "groups": sorted(principal.groups),
        "scopes": sorted(principal.scopes or ()),
        "mayCall": [category for category in CATEGORIES if policy.of(category).is_held_by(principal)],
    }
