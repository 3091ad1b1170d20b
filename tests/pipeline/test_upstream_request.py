"""What is sent for a caller, apart from what only carries it from round to round."""

from __future__ import annotations

from contextlib import nullcontext

from msgspec import Raw

from pactgate.pipeline.upstream_request import UpstreamRequest
from tests.support.asking import asker
from tests.support.callers import context


class Endless:
    def waiting_for_client(self) -> nullcontext[None]:
        return nullcontext()


def made(members: dict[str, Raw]) -> UpstreamRequest:
    return UpstreamRequest(
        context(),
        asker(),
        "files",
        "tools/call",
        members,
        meta={},
        name="x",
        on_progress=None,
        deadline=Endless(),
        on_send=lambda session: (),
        on_asked=lambda: None,
    )


def test_answers_and_state_are_no_part_of_the_request_itself() -> None:
    plain = made({"name": Raw(b'"x"'), "odd": Raw(b"1")})
    again = made({"name": Raw(b'"x"'), "odd": Raw(b"1"), "inputResponses": Raw(b"{}"), "requestState": Raw(b'"s"')})
    assert again.members == plain.members
    assert (again.responses, again.state) == (Raw(b"{}"), Raw(b'"s"'))
    assert (plain.responses, plain.state) == (None, None)
    assert again.binding() == plain.binding()
