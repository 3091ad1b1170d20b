"""A POST that was begun: read in the step in which its answer arrives, followed by a task only while it is a stream."""

from __future__ import annotations

import asyncio

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol.messages import Response as Answer
from pactgate.upstreams.http.post import Post
from pactgate.upstreams.http.response import HttpResponse, ResponseStream
from tests.upstreams.test_pending import LOST, Ledger, Sink

LIMIT_S = 5.0


class Source:
    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def drain(self) -> None: ...

    def abort(self) -> None: ...


class Reader:
    """A channel that does with an answer what the test says."""

    post: Post

    def __init__(self, *, answers: bool = True, problem: Exception | None = None) -> None:
        self._answers = answers
        self._problem = problem
        self.go_on = asyncio.Event()
        self.ended = asyncio.Event()

    def take_whole(self, id_: int, response: HttpResponse) -> None:
        if self._problem is not None:
            raise self._problem
        if self._answers:
            self.post.answered(Answer(id_, response.body))

    async def take_stream(self, id_: int, response: HttpResponse) -> None:
        try:
            await self.go_on.wait()
            self.take_whole(id_, response)
        finally:
            self.ended.set()


def posted(*, answers: bool = True, problem: Exception | None = None) -> tuple[Post, Sink, Reader]:
    sink, reader = Sink(), Reader(answers=answers, problem=problem)
    reader.post = Post(reader, Ledger(), sink, 7)
    return reader.post, sink, reader


async def test_a_whole_answer_is_told_before_anything_else_happens() -> None:
    post, sink, _ = posted()
    post.took(HttpResponse(200, {}, b"{}"))
    assert sink.told == [b"{}"]


async def test_what_is_wrong_with_an_answer_is_told() -> None:
    problem = GatewayFailure(Kind.INVALID_FRAME, "no JSON")
    post, sink, _ = posted(problem=problem)
    post.took(HttpResponse(200, {}, b"<html>"))
    assert sink.told == [problem]


async def test_an_answer_to_something_else_is_a_failure_of_this_request() -> None:
    post, sink, _ = posted(answers=False)
    post.took(HttpResponse(200, {}, b"{}"))
    assert [str(told) for told in sink.told] == ["7 was not answered"]


async def test_a_broken_connection_is_told() -> None:
    post, sink, _ = posted()
    post.failed(LOST)
    assert sink.told == [LOST]


async def test_a_stream_is_followed_to_its_answer() -> None:
    post, sink, reader = posted()
    post.took(HttpResponse(200, {}, b"{}", ResponseStream(Source())))
    assert sink.told == []
    reader.go_on.set()
    async with asyncio.timeout(LIMIT_S):
        await reader.ended.wait()
    assert sink.told == [b"{}"]


async def test_giving_up_ends_whoever_follows_the_stream() -> None:
    post, sink, reader = posted()
    post.took(HttpResponse(200, {}, b"{}", ResponseStream(Source())))
    await asyncio.sleep(0)
    post.give_up()
    async with asyncio.timeout(LIMIT_S):
        await reader.ended.wait()
    await asyncio.sleep(0)
    assert sink.told == []


async def test_a_mistake_of_ours_while_following_is_reported_and_the_request_fails() -> None:
    loop, reported = asyncio.get_running_loop(), list[object]()
    loop.set_exception_handler(lambda _loop, facts: reported.append(facts.get("exception")))
    post, sink, reader = posted(problem=ZeroDivisionError("a bug"))
    reader.go_on.set()
    post.took(HttpResponse(200, {}, b"{}", ResponseStream(Source())))
    async with asyncio.timeout(LIMIT_S):
        await reader.ended.wait()
        while not reported:
            await asyncio.sleep(0)
    assert [str(told) for told in sink.told] == ["7 was not answered"]
    assert isinstance(reported[0], ZeroDivisionError)
