"""Who serves whom, and parts that add up."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pactgate.config.model import Config
from pactgate.config.sections.limits import Limits
from pactgate.workers.homes import Place, home_of, shared, unshareable


@given(st.text(max_size=50), st.integers(1, 64))
def test_every_caller_has_one_home_among_the_workers(subject: str, count: int) -> None:
    assert 0 <= home_of(subject, count) < count
    assert home_of(subject, count) == home_of(subject, count)


def test_a_home_is_the_same_in_every_process() -> None:
    code = "from pactgate.workers.homes import home_of; print([home_of(f'caller {n}', 7) for n in range(20)])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=20)
    assert said.stdout.strip() == str([home_of(f"caller {number}", 7) for number in range(20)])


def test_callers_spread_over_the_workers() -> None:
    homes = [home_of(f"caller {number}", 4) for number in range(1000)]
    assert all(200 < homes.count(home) < 300 for home in range(4))


@given(st.integers(0, 10_000), st.integers(1, 64))
def test_the_parts_of_a_bound_add_up_to_it(total: int, count: int) -> None:
    parts = [Place(index, count).share(total) for index in range(count)]
    assert sum(parts) == total
    assert max(parts) - min(parts) <= 1


def test_all_workers_together_have_the_bounds_of_one_gateway() -> None:
    config = Config()
    parts = [shared(config, Place(index, 3)) for index in range(3)]
    assert sum(part.limits.max_in_flight for part in parts) == config.limits.max_in_flight
    assert sum(part.limits.max_in_flight_per_server for part in parts) == config.limits.max_in_flight_per_server
    assert sum(part.limits.max_queued_per_server for part in parts) == config.limits.max_queued_per_server
    assert sum(part.sessions.max_sessions for part in parts) == config.sessions.max_sessions
    assert sum(part.cache.max_size_bytes for part in parts) == config.cache.max_size_bytes
    assert sum(part.cache.max_entries for part in parts) == config.cache.max_entries
    assert {part.sessions.max_per_caller for part in parts} == {config.sessions.max_per_caller}


def test_a_bound_that_can_t_be_divided_is_named_with_what_to_do() -> None:
    config = replace(Config(), limits=replace(Limits(), max_in_flight_per_server=3))
    assert unshareable(config, 3) is None
    said = unshareable(config, 4)
    assert said is not None
    assert "limits.maxInFlightPerServer is 3" in said
    assert "fewer workers" in said
