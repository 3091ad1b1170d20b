"""Orphans of servers: a gateway that is a program of its own adopts, ends and reaps them."""

from __future__ import annotations

import os
import signal

import pytest

from tests.support.children import Witness
from tests.support.eventually import eventually_blocking
from tests.support.processes import descendants_of
from tests.upstreams.process.test_child_reaper import little_gateway


@pytest.mark.requirement("S1/XC-003")
@pytest.mark.parametrize("manner", ["clearing_parent", "detaching_parent", "parent"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1], ids=["the gateway ends", "the server ends"])
def test_a_gateway_of_its_own_adopts_and_ends_what_a_server_left(manner: str, number: signal.Signals) -> None:
    with little_gateway(manner) as (gateway, pids), Witness(pids[:-1]) as witness:
        gateway.send_signal(number)
        assert witness.living_after(4) == set()
        eventually_blocking(lambda: set(descendants_of(gateway.pid)) <= {pids[-1]})  # and reaps them


def test_what_a_living_server_has_just_left_does_not_end_with_another_server() -> None:
    with little_gateway("echo", "detaching_parent") as (_, (ends, lives, left, _)), Witness([lives, left]) as witness:
        os.kill(ends, signal.SIGKILL)
        assert witness.living_after(1) == {lives, left}
