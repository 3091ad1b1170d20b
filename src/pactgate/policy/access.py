"""Access to tools: the gateway's own tools are for administrators, all others are for every client that is admitted.

Text that a server wrote itself, as its last output on stderr, is for administrators too: it may be about another caller.

For everybody else the gateway's own tools do not exist: no list shows them and no name reaches them. Roles come from the token of a caller;
a caller without a token has none, so an anonymous caller is never an administrator (D17, D18). Must not: authenticate callers.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from pactgate.config.value_checks import OWN_SERVER_ID

ADMIN: Final = "admin"
ADMINISTRATOR: Final = frozenset({ADMIN})
ALLOWED_FOR: Final = "allowedFor"
"""The member of a tool's row that names the classes of clients, for administrators."""


def sees_everything(roles: Collection[str]) -> bool:
    """Whether the gateway's own server exists for a caller with these roles, and the calls of others."""
    return ADMIN in roles


def may_call(server: str, roles: Collection[str]) -> bool:
    return server != OWN_SERVER_ID or ADMIN in roles


def shown_row(row: dict[str, Any], roles: Collection[str]) -> dict[str, Any]:
    """The state of a server as a caller with these roles sees it: for everybody else the error is without the server's own words."""
    shown = {name: fact for name, fact in row.items() if name != "lastErrorDetail"}
    detail = row.get("lastErrorDetail")
    if detail and sees_everything(roles):
        if row.get("trouble") == row.get("lastError"):
            shown["trouble"] = detail
        shown["lastError"] = detail
    return shown
