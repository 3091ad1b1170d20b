"""Wrong credentials: counted by address, slowed after a few, told of within bounds."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from pactgate.core.events import CredentialsRefused, Event
from pactgate.inbound import guess_brake
from pactgate.inbound.auth import Guard
from pactgate.inbound.guess_brake import DELAY_S, FORGET_AFTER_S, FREE_GUESSES, MAX_ADDRESSES, GuessBrake
from pactgate.inbound.server_limits import ServerLimits
from tests.support.facing import Clock, credentials, modern, serving, until

GOOD = "token-of-ops-0123456789"


def guard() -> Guard:
    return Guard(host="127.0.0.1", credentials=credentials({GOOD: ("ops", frozenset())}))


def call(token: str) -> bytes:
    return modern("tools/call", name="echo", authorization=f"Bearer {token}")


class Brake:
    def __init__(self) -> None:
        self.clock = Clock()
        self.events: list[Event] = []
        self.brake = GuessBrake(self.events.append, self.clock)

    def told(self) -> list[tuple[str, int, int]]:
        return [
            (event.peer, event.attempts, event.elsewhere)
            for event in self.events
            if isinstance(event, CredentialsRefused)
        ]


def test_an_address_waits_after_some_guesses_and_the_others_do_not() -> None:
    made = Brake()
    waits = [made.brake.note("192.0.2.1") for _ in range(FREE_GUESSES + 2)]
    assert waits == [0.0] * FREE_GUESSES + [DELAY_S] * 2
    assert made.brake.note("192.0.2.2") == 0.0


def test_an_address_that_stops_guessing_is_forgotten() -> None:
    made = Brake()
    for _ in range(FREE_GUESSES + 1):
        made.brake.note("192.0.2.1")
    made.clock.now += FORGET_AFTER_S
    assert made.brake.note("192.0.2.1") == 0.0


def test_the_addresses_of_one_network_of_ipv6_are_one() -> None:
    made = Brake()
    waits = [made.brake.note(f"2001:db8::{number:x}") for number in range(FREE_GUESSES + 1)]
    assert waits[-1] == DELAY_S
    assert made.brake.note("2001:db8:0:1::1") == 0.0
    assert made.brake.note("fe80::1%eth0") == 0.0
    assert len(made.brake) == 3


def test_many_addresses_are_bounded_in_number_and_in_events() -> None:
    made = Brake()
    for number in range(MAX_ADDRESSES * 3):
        made.brake.note(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
        made.clock.now += 0.001
    assert len(made.brake) == MAX_ADDRESSES
    assert len(made.told()) <= MAX_ADDRESSES * 3 * 0.001 / 0.1 + 1
    assert sum(attempts + elsewhere for _, attempts, elsewhere in made.told()) > MAX_ADDRESSES


def test_an_address_is_told_of_at_its_first_tenth_and_hundredth_guess_and_every_minute() -> None:
    made = Brake()
    for _ in range(150):
        made.brake.note("192.0.2.1")
        made.clock.now += 0.2
    assert made.told() == [("192.0.2.1", 1, 0), ("192.0.2.1", 9, 0), ("192.0.2.1", 90, 0)]
    made.clock.now += 55
    made.brake.note("192.0.2.1")
    assert made.told()[-1] == ("192.0.2.1", 51, 0)


async def test_guesses_over_one_connection_are_slowed_then_its_connection_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guess_brake, "DELAY_S", 0.3)
    async with serving(guard=guard()) as served, served.client() as client:
        for _ in range(FREE_GUESSES):
            assert (await client.ask(call("wrong"))).header("connection") is None
        started = asyncio.get_running_loop().time()
        slowed = await client.ask(call("wrong"))
        assert asyncio.get_running_loop().time() - started >= 0.3 * 0.9
        assert (slowed.status, slowed.header("connection")) == (401, "close")
        (told,) = [event for event in served.events if isinstance(event, CredentialsRefused)][:1]
        assert told.peer == "127.0.0.1"


async def test_while_guesses_wait_a_good_token_of_the_same_address_does_not() -> None:
    async with serving(guard=guard()) as served:
        guessing = [asyncio.ensure_future(served.ask(call(f"wrong-{number}"))) for number in range(50)]
        await until(lambda: served.server.connection_count > 20)
        for _ in range(20):
            started = asyncio.get_running_loop().time()
            assert (await served.ask(call(GOOD))).status == 200
            assert asyncio.get_running_loop().time() - started < DELAY_S / 2
        assert {answer.status for answer in await asyncio.gather(*guessing)} == {401}


async def test_guesses_that_wait_keep_no_connection_from_a_good_token_of_the_same_address() -> None:
    limits = ServerLimits(max_connections_per_address=8)
    async with serving(guard=guard(), limits=limits) as served, AsyncExitStack() as stack:
        for _ in range(FREE_GUESSES):
            await served.ask(call("wrong"))
        await until(lambda: served.server.connection_count == 0)
        for _ in range(40):
            client = await stack.enter_async_context(served.client())
            await client.send(call("wrong"))
        await until(lambda: len(served.server.exchanges()) >= 8)
        assert (await served.ask(call(GOOD))).status == 200


async def test_a_request_without_credentials_is_no_guess() -> None:
    async with serving(guard=guard()) as served, served.client() as client:
        for _ in range(FREE_GUESSES * 3):
            assert (await client.ask(modern("tools/call", name="echo"))).header("connection") is None
        assert not [event for event in served.events if isinstance(event, CredentialsRefused)]


async def test_a_guesser_that_goes_away_leaves_nothing_and_a_gateway_that_stops_does_not_wait_for_it() -> None:
    async with serving(guard=guard()) as served:
        for _ in range(FREE_GUESSES):
            await served.ask(call("wrong"))
        async with served.client() as client:
            await client.send(call("wrong"))
            await until(lambda: len(served.server.exchanges()) == 1)
        await until(lambda: not served.server.exchanges())
        async with served.client() as client:
            await client.send(call("wrong"))
            await until(lambda: len(served.server.exchanges()) == 1)
            started = asyncio.get_running_loop().time()
            await served.server.close(0.0)
            assert (await client.answer()).status == 401
            assert asyncio.get_running_loop().time() - started < DELAY_S / 2
