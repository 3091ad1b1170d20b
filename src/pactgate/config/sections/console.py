"""The section `console`: whether the console is served.

Must not: say who may sign in; that is `auth`, and the link that `pactgate serve` prints.
"""

from __future__ import annotations

from typing import Annotated, Any

from pactgate.config.problems import ConfigFindings
from pactgate.config.sections import Section, doc
from pactgate.config.sections.listen import ListenSection
from pactgate.config.value_checks import is_loopback


class ConsoleSection(Section, frozen=True, kw_only=True):
    """The console, a page for the browser at `/console/`."""

    enabled: Annotated[
        bool | None,
        doc(
            "Whether the console is served. Default: only on loopback. Elsewhere it needs clients to have tokens or keys."
        ),
    ] = None


def check_console(settings: dict[str, Any], found: ConfigFindings) -> None:
    """Beyond loopback a console without credentials would show every call to everybody."""
    host = settings.get("listen", {}).get("host", ListenSection().host)
    if settings.get("console", {}).get("enabled") is not True or is_loopback(host):
        return
    if settings.get("auth", {}).get("anonymous") is True:
        message = f"The console on {host} needs clients to have tokens or keys, and auth.anonymous is true."
        found.add(("console", "enabled"), message, "Remove auth.anonymous, or listen on 127.0.0.1.", at_value=True)
