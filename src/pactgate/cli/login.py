"""`pactgate login`, `logout` and `auth status`: sign-ins at servers that want OAuth. A token is never printed."""

from __future__ import annotations

import asyncio
import time
import webbrowser
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from pactgate.cli import terminal
from pactgate.cli.completions import server_ids
from pactgate.cli.config_file import find_config, load_config
from pactgate.cli.errors import CommandError
from pactgate.cli.shared_options import config_option, json_option
from pactgate.cli.table import Column, show_table
from pactgate.config.model import Config
from pactgate.config.validate import SERVER_LISTS
from pactgate.core.failures import GatewayFailure

if TYPE_CHECKING:
    from pactgate.state.credential_store import CredentialStore
    from pactgate.upstreams.oauth.stored_grants import KeptGrant

_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def _with_store(function: Callable[..., int]) -> Callable[..., int]:
    """Add `--config`, and call the function with the configuration and its credential store."""

    @wraps(function)
    def run(*, config: str | None, **options: object) -> int:
        from pactgate.sign_ins import credential_store

        settings = load_config(find_config(config), only=(*SERVER_LISTS, "auth.resource", "state"))
        store = credential_store(settings)
        if store is None:
            raise CommandError(
                "There is no configuration here, and credentials are kept beside one.", "Name one with --config."
            )
        try:
            return function(settings, store, **options)
        except GatewayFailure as failure:
            raise CommandError(failure.message, exit_code=1) from None

    return config_option(run)


@click.command()
@click.argument("server", shell_complete=server_ids)
@click.option("--no-browser", is_flag=True, help="Only print the URL; the address you end up at can be pasted here.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="Port for the answer. Default: any free one.",
)
@_with_store
def login(settings: Config, store: CredentialStore, *, server: str, no_browser: bool, port: int) -> int:
    """Sign in to SERVER with your browser. The gateway uses and renews the sign-in from then on, also while it runs.

    On a machine without a browser: open the URL elsewhere, and paste the address that the browser ends up at, which it can't load.
    """
    from pactgate.upstreams.oauth.browser_sign_in import sign_in_by_browser

    found = settings.servers.get(server)
    if found is None:
        raise CommandError(f"There is no server {server} in {settings.file}.", "`pactgate servers` lists them.")
    if found.url is None:
        raise CommandError(f"{server} has no url; only servers over HTTP want a sign-in.")
    auth = found.auth
    if auth is not None and auth.has_no_shared_grant:
        by_itself = "who: service" if auth.who == "service" else "lists: service, who: exchange"
        raise CommandError(f"The gateway signs in to {server} by itself ({by_itself}).", "There is nothing to do.")

    def show(url: str) -> None:
        terminal.say_note("Open this in a browser and agree there:")
        terminal.say(url)
        if no_browser:
            terminal.say_note("If the browser runs elsewhere, paste the address it ends up at:")
        elif not webbrowser.open(url):
            terminal.say_note("No browser could be started here.")

    signing_in = sign_in_by_browser(found, store, show, port=port, takes_paste=True, document=settings.client_document)
    grant = asyncio.run(signing_in)
    kept = (
        "It is renewed by itself." if grant.refresh_token else "It can't be renewed: sign in again when it has ended."
    )
    terminal.say_note(f"Signed in to {server} at {grant.client.issuer}. {kept}")
    if auth is not None and auth.is_per_caller:
        use = "lists the tools"
        if auth.lists_by_service:  # what is left is who starts the gateway over stdio
            use = "is for the calls of whoever starts the gateway itself"
        own = "sends its own token" if auth.who == "exchange" else "signs in by the link that its first call gives"
        terminal.say_note(f"It {use}. For its own calls each client {own}.")
    return 0


@click.command()
@click.argument("server", shell_complete=server_ids)
@click.option("--who", metavar="CLIENT", default="", help="Only the sign-in of this client, as `auth status` shows it.")
@_with_store
def logout(settings: Config, store: CredentialStore, *, server: str, who: str) -> int:
    """Forget the sign-ins and the client of SERVER. At the authorization server they end only when you end them there."""
    if not store.remove(server, who):
        raise CommandError(f"{who or 'Nobody'} is {'not ' if who else ''}signed in to {server}.", exit_code=1)
    terminal.say_note(
        f"The sign-in{'' if who else 's'} {f'of {who} ' if who else ''}to {server} {'is' if who else 'are'} forgotten."
    )
    return 0


@click.command()
@json_option
@_with_store
def status(settings: Config, store: CredentialStore, *, as_json: bool) -> int:
    """Show the sign-ins at servers: issuer, scopes, end, last renewal. A token is never shown."""
    from pactgate.upstreams.oauth.stored_grants import all_grants

    rows = [_row(settings, kept) for kept in all_grants(store)]
    if as_json:
        terminal.say_json(rows)
    elif not rows:
        terminal.say("Nobody is signed in to a server. `pactgate login SERVER` signs in.")
    else:
        shown = [
            (
                row["server"],
                row["who"],
                row["issuer"],
                " ".join(row["scopes"]) or "-",
                _state(row),
                _ago(row["lastRefresh"]),
            )
            for row in rows
        ]
        names = ("SERVER", "WHO", "ISSUER", "SCOPES", "ACCESS TOKEN", "LAST RENEWED")
        show_table([Column(name) for name in names], shown)
    return 0


@click.command("rotate-key")
@_with_store
def rotate_key(settings: Config, store: CredentialStore) -> int:
    """Seal the credentials of servers with a new key. With PACTGATE_KEY, put the new key before the old one there, then run this."""
    terminal.say(f"{asyncio.run(store.rotate()) if store.exists else 0} credentials are sealed with a new key.")
    return 0


def _row(settings: Config, kept: KeptGrant) -> dict[str, Any]:
    server, who, stored = kept
    grant = stored.grant
    return {
        "server": server,
        "who": (who or "shared") if server in settings.servers else "no such server",
        "issuer": grant.client.issuer,
        "resource": grant.resource,
        "clientId": grant.client.id,
        "scopes": list(grant.requested if grant.scopes is None else grant.scopes),
        "signedInAt": int(grant.signed_in_at),
        "expiresAt": None if grant.expires_at is None else int(grant.expires_at),
        "lastRefresh": None if grant.refreshed_at is None else int(grant.refreshed_at),
        "isRenewable": bool(grant.refresh_token),
        "hasEnded": not grant.access_token,
        "generation": stored.generation,
    }


def _state(row: dict[str, Any]) -> str:
    """How long the access token is valid, and what happens then."""
    if row["hasEnded"]:
        return (
            f"ended: pactgate login {row['server']}" if row["who"] == "shared" else "ended: its next call gives a link"
        )
    then = "renewed by itself" if row["isRenewable"] else "then sign in again"
    if row["expiresAt"] is None:
        return f"valid, {then}"
    left_s = row["expiresAt"] - time.time()
    return f"{_span(left_s)} left, {then}" if left_s > 0 else f"expired, {then}"


def _ago(at: int | None) -> str:
    return "-" if at is None else f"{_span(time.time() - at)} ago"


def _span(seconds: float) -> str:
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return "0 s"
