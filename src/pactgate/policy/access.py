"""Access to tools: the gateway's own tools are for administrators, all others are for every client that is admitted.

For everybody else the gateway's own tools do not exist: no list shows them and no name reaches them. Roles come from the token of a caller;
a caller without a token has none, so an anonymous caller is never an administrator (D17, D18). Must not: authenticate callers.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pactgate.config.value_checks import OWN_SERVER_ID

ADMIN: Final = "admin"
ADMINISTRATOR: Final = frozenset({ADMIN})


def sees_everything(roles: Collection[str]) -> bool:
    """Whether the gateway's own server exists for a caller with these roles, and the calls of others."""
    return ADMIN in roles


def may_call(server: str, roles: Collection[str]) -> bool:
    return server != OWN_SERVER_ID or ADMIN in roles
