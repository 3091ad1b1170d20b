"""Every client reaches every upstream on every path, views and search surfaces among them, whatever era either of them speaks."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interop.pairings import SEARCH, SERVER, Pairing, every_pairing, why_not_here

pytestmark = [pytest.mark.interop, pytest.mark.timeout(150)]
PAIRINGS = list(every_pairing())


def named(pairing: Pairing) -> str:
    return f"{pairing.client}->{pairing.upstream.id}{pairing.path}"


@pytest.mark.parametrize("pairing", PAIRINGS, ids=named)
def test_a_client_lists_and_calls_the_tool_of_an_upstream(
    pairing: Pairing, played: dict[tuple[str, str, str], dict[str, Any]]
) -> None:
    missing = why_not_here(upstream=pairing.upstream, client=pairing.client)
    if missing is not None:
        pytest.skip(missing)
    outcome = played[pairing.client, pairing.upstream.id, pairing.path]
    assert "error" not in outcome, outcome
    assert pairing.tool in outcome["listed"]
    if pairing.path == SERVER:
        assert outcome["listed"] == [pairing.tool]
    if pairing.path == SEARCH:
        assert outcome["listed"] == ["find_tools", "describe_tools", "call_tool"]
    assert outcome["text"] == f"hello {pairing.client}, this is {pairing.upstream.id}"


@pytest.mark.parametrize(
    ("client", "version"),
    [
        ("sdk2-legacy", "2025-11-25"),
        ("sdk2-auto", "2026-07-28"),
        ("sdk2-modern", "2026-07-28"),
        ("sdk1", "2025-11-25"),
        ("ts1", "2025-11-25"),
        ("ts2-legacy", "2025-11-25"),
        ("ts2-auto", "2026-07-28"),
        ("ts2-modern", "2026-07-28"),
    ],
)
def test_a_client_is_spoken_to_in_the_newest_revision_it_asks_for(
    client: str, version: str, played: dict[tuple[str, str, str], dict[str, Any]]
) -> None:
    seen = {outcome.get("version") for (player, _, _), outcome in played.items() if player == client}
    if not seen:
        pytest.skip(f"NOT RUN: {client}")
    assert seen == {version}
