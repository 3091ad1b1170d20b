"""Every check: explained, right about a recording of each kind, fair to what is no gateway, and failing where exactly this is broken."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import product
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks import BY_CODE, CHECKS
from pactgate.conformance.gateway.checks.faults import neighbours
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.results import judge_one
from pactgate.conformance.rule import SECTIONS, CheckStatus
from tests.conformance.gateway.playing import Playground, playground, without_patience
from tests.conformance.gateway.switches import SWITCHES

FIXTURES = Path(__file__).parent / "fixtures"
DIRECT = [check for check in CHECKS if not check.needs_gateway]
BEHIND_OURS = [check for check in CHECKS if check.needs_gateway and check.family is not Family.OWNERSHIP]


def by_code(value: object) -> str:
    return value.code if isinstance(value, type) and issubclass(value, Check) else str(value)


def test_a_check_says_what_must_hold_why_and_how_to_mend_it() -> None:
    for check in CHECKS:
        assert check.title().endswith("."), check.code
        assert tuple(check.sections()) == SECTIONS, check.code
        assert all(text.endswith(".") for text in check.sections().values()), check.code


def test_every_check_has_a_code_and_a_name_of_its_own_and_recordings_for_both() -> None:
    assert sorted(folder.name for folder in FIXTURES.iterdir()) == [check.code for check in CHECKS]
    assert len({check.slug() for check in CHECKS}) == len(CHECKS)


def test_a_check_is_right_about_its_recordings() -> None:
    for check, kind in product(CHECKS, ("pass", "fail")):
        data = json.loads((FIXTURES / check.code / f"{kind}.json").read_text(encoding="utf-8"))
        recording = msgspec.convert(data, type=CheckRecording)
        assert judge_one(check, recording).status.value == kind, check.code


@pytest.fixture(scope="module")
def impatient() -> Iterator[None]:
    with without_patience():
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def direct(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Playground]:
    async with playground(tmp_path_factory.mktemp("direct"), DIRECT, gateway=False) as ground:
        yield ground


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def behind_ours(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Playground]:
    async with playground(tmp_path_factory.mktemp("ours"), BEHIND_OURS, gateway=True) as ground:
        yield ground


def not_passed(recordings: Iterable[CheckRecording]) -> list[str]:
    """The checks that did not pass, by their recordings, which come in the order of `CHECKS`."""
    judged = ((recording, judge_one(BY_CODE[recording.code], recording).status) for recording in recordings)
    return [f"{recording.code}: {status} {recording.error}" for recording, status in judged if status != "pass"]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.usefixtures("impatient")
async def test_each_check_passes_without_a_gateway_where_nothing_is_broken(direct: Playground) -> None:
    assert not_passed(await direct.play_all(DIRECT)) == []


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("check", DIRECT, ids=by_code)
async def test_a_check_fails_where_exactly_this_is_broken(check: type[Check], direct: Playground) -> None:
    assert judge_one(check, await direct.play(check, SWITCHES[check.code])).status is CheckStatus.FAIL


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.usefixtures("impatient")
async def test_each_check_of_gateways_passes_behind_ours(behind_ours: Playground) -> None:
    assert not_passed(await behind_ours.play_all(BEHIND_OURS)) == []


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("check", BEHIND_OURS, ids=by_code)
async def test_a_check_of_gateways_fails_where_exactly_this_is_broken(
    check: type[Check], behind_ours: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "BACK_S", 0.5)  # what is broken does not come back
    monkeypatch.setattr(neighbours, "FAULTY_S", 0.5)
    assert judge_one(check, await behind_ours.play(check, SWITCHES[check.code])).status is CheckStatus.FAIL
