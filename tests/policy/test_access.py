"""Who sees the gateway's own server: administrators, and nobody else."""

from __future__ import annotations

import pytest

from pactgate.policy.access import ADMINISTRATOR, may_call, sees_everything


@pytest.mark.parametrize(
    ("roles", "is_admin"),
    [(ADMINISTRATOR, True), (frozenset({"dev", "admin"}), True), (frozenset(), False), (frozenset({"Admin"}), False)],
)
def test_only_the_role_admin_opens_the_gateways_own_server(roles: frozenset[str], is_admin: bool) -> None:
    assert sees_everything(roles) is is_admin
    assert may_call("pactgate", roles) is is_admin


def test_every_other_server_is_everybodys() -> None:
    assert may_call("files", frozenset())
    assert may_call("pactgate2", frozenset())
