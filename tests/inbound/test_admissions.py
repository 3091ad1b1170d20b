from __future__ import annotations

from pactgate.core.principal import Principal
from pactgate.inbound import admissions
from pactgate.inbound.admissions import AdmissionMemory
from pactgate.inbound.credentials import Admission

ANN = Principal("ann")


def test_a_token_is_known_until_it_expires() -> None:
    memory = AdmissionMemory()
    memory.put(b"a", Admission(ANN, 10.0), 0.0)
    assert memory.get(b"a", 9.9) == Admission(ANN, 10.0)
    assert memory.get(b"a", 10.0) is None


def test_a_token_that_never_expires_is_checked_again_after_a_day() -> None:
    memory = AdmissionMemory()
    memory.put(b"a", Admission(ANN), 0.0)
    assert memory.get(b"a", admissions.MAX_AGE_S - 1) is not None
    assert memory.get(b"a", admissions.MAX_AGE_S) is None


def test_the_longest_unused_token_makes_room() -> None:
    memory = AdmissionMemory()
    for number in range(admissions.MAX_REMEMBERED):
        memory.put(b"%d" % number, Admission(ANN), 0.0)
    assert memory.get(b"0", 1.0) is not None
    memory.put(b"new", Admission(ANN), 1.0)
    assert memory.get(b"0", 1.0) is not None
    assert memory.get(b"1", 1.0) is None


def test_tokens_that_expire_within_one_second_are_looked_at_together() -> None:
    memory = AdmissionMemory([3.5])
    for number in range(100):
        memory.put(b"%d" % number, Admission(ANN, 5 + number / 200), 0.0)
    times = []
    now = 0.0
    while (at := memory.next_expiry(now)) is not None:
        times.append(at)
        now = at
    assert times == [3.5, 5, 6]
