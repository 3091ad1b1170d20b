"""The guard follows the configuration, and nobody gets in because something was taken away."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from pactgate.admission import Admission
from pactgate.config.model import Config
from pactgate.config.sections.auth import ANONYMOUS, GENERATED, Auth, Token
from pactgate.config.sections.listen import ListenSection
from pactgate.inbound.auth import Guard
from pactgate.inbound.subject_tokens import SubjectTokens
from pactgate.upstreams.http.client import HttpClient

TOKENS = Auth(tokens={"ops": Token(token="correct-horse-battery-staple")})


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.close()


def admission(config: Config, client: HttpClient) -> Admission:
    return Admission(config, client, lambda event: None, SubjectTokens(), on_keys=lambda: None)


def names(guard: Guard) -> set[str]:
    return {one.key for one in guard.holders()}


async def test_without_tokens_anybody_on_this_machine_may_call_and_no_token_is_made(client: HttpClient) -> None:
    local = admission(Config(), client)
    assert local.make_token() is None
    assert names(local.first_guard(None)) == {ANONYMOUS}


async def test_beyond_this_machine_only_the_token_of_the_run_is_let_in(client: HttpClient) -> None:
    reachable = admission(Config(listen=ListenSection(host="0.0.0.0")), client)
    assert reachable.make_token() == reachable.generated_token is not None
    assert names(reachable.first_guard(None)) == {GENERATED}


async def test_taking_the_last_token_away_lets_nobody_in_until_the_next_start(client: HttpClient) -> None:
    config = Config(auth=TOKENS)
    one = admission(config, client)
    assert names(one.first_guard(None)) == {"ops"}
    one.apply(replace(config, auth=Auth()))
    assert names(one.first_guard(None)) == set()
    one.apply(replace(config, auth=Auth(anonymous=True)))
    assert names(one.first_guard(None)) == {ANONYMOUS}
