"""Who may see and call what: the tools of the gateway itself are for administrators, everything else is for everybody who is let in.

To anybody else they do not exist, in no list and under no name. Roles come from the token of a caller; a caller without a token has none,
so nobody anonymous is an administrator (D17, D18). Must not: know how a caller was told apart.
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
