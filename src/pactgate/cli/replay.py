"""`pactgate replay`: a capture serves as an upstream, or its requests are played at a live server and the answers compared.

Exit codes: 0 served to the end, or no difference; 1 differences, or a capture or server that can't be used; 2 wrong invocation. What a
person should know goes to standard error; standard output is the protocol's while serving, and the report's while comparing.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Final

from pactgate.capture.format import CaptureError, read
from pactgate.capture.replay_client import Played, Rehearsal
from pactgate.capture.replay_server import Cassette, Recorded, TooLargeError, recorded_in
from pactgate.capture.source import chunks_of
from pactgate.cli import terminal
from pactgate.cli.live_target import BadTargetError, label, target_of
from pactgate.conformance.probe import connected
from pactgate.core.display import flat, visible
from pactgate.core.failures import GatewayFailure

_WRONG: Final = 2
_MAX_SESSIONS: Final = 1000


class Choice:
    """One session of a capture: what it is called, and its answered requests."""

    def __init__(self, index: int, name: str, recorded: list[Recorded]) -> None:
        self.index = index
        self.name = name
        self.recorded = recorded


class BadChoiceError(ValueError):
    """The capture has several sessions, or none by that name."""


def load(path: str, wanted: str | None) -> Choice:
    """The session that was asked for, by its number or label; the only one where nobody asked."""
    found: list[Choice] = []
    for session in read(chunks_of(path)):
        recorded = list(recorded_in(session))
        found.append(Choice(session.index, session.head.label, recorded))
        if len(found) > _MAX_SESSIONS:
            raise BadChoiceError(f"{path} has more than {_MAX_SESSIONS} sessions.")
    if wanted is not None:
        fitting = [each for each in found if wanted in (str(each.index + 1), each.name)]
        if len(fitting) == 1:
            return fitting[0]
    elif len(found) == 1:
        return found[0]
    names = ", ".join(f"{each.index + 1} ({each.name}, {len(each.recorded)} answers)" for each in found[:20])
    raise BadChoiceError(f"{path} has {len(found)} sessions; choose one with --session: {names or 'there is none'}.")


def replay(
    path: str,
    wanted: str | None,
    words: list[str],
    headers: list[str],
    *,
    against: bool,
    port: int | None,
    as_json: bool,
) -> int:
    try:
        if not against and (words or headers):
            raise BadTargetError("A server is only needed with --against.")
        if against and port is not None:
            raise BadTargetError("--port serves the capture, --against plays it; choose one.")
        target = target_of(words, headers) if against else None
        chosen = load(path, wanted)
    except (BadTargetError, BadChoiceError) as problem:
        terminal.problem(str(problem))
        return _WRONG
    except (CaptureError, TooLargeError) as problem:
        terminal.problem(str(problem))
        return 1
    if target is None:
        return _serve(path, chosen, port)
    try:
        played = asyncio.run(_rehearse(chosen, target))
    except GatewayFailure as failure:
        terminal.problem(f"{label(target)} can't be asked: {failure.message}")
        return 1
    _report(chosen, label(target), played, as_json=as_json)
    return 0 if all(each.is_same for each in played) else 1


# Serving.


def _serve(path: str, chosen: Choice, port: int | None) -> int:
    cassette = Cassette(chosen.recorded)
    print(
        f"pactgate replay: {visible(chosen.name)} from {visible(path)}, {cassette.count} recorded answers; "
        "nothing real is behind this",
        file=sys.stderr,
        flush=True,
    )
    if port is None:
        return _serve_stdio(cassette)
    from pactgate.cli.replay_http import serve

    return asyncio.run(serve(cassette, port))


def _serve_stdio(cassette: Cassette) -> int:
    for line in sys.stdin.buffer:
        answer = cassette.answer_text(line)
        if answer is not None:
            sys.stdout.buffer.write(answer + b"\n")
            sys.stdout.buffer.flush()
    return 0


# Playing.


async def _rehearse(chosen: Choice, target: Any, timeout_s: float = 60.0) -> list[Played]:
    async with connected(target, None, timeout_s) as session:
        return await Rehearsal(session, timeout_s).play(chosen.recorded)


def _report(chosen: Choice, server: str, played: list[Played], *, as_json: bool) -> None:
    different = [each for each in played if not each.is_same]
    skipped = [each for each in played if each.skipped is not None]
    if as_json:
        terminal.say_json(
            {
                "schema_version": 1,
                "same": not different,
                "session": chosen.name,
                "server": server,
                "requests": [_described(each) for each in played],
            }
        )
        return
    for each in played:
        if each.skipped is not None:
            print(f"  {terminal.paint('skip', 'dim', sys.stdout)}  {_named(each)}: {each.skipped}")
        for difference in each.differences:
            print(
                f"  {terminal.paint('diff', 'red', sys.stdout)}  {_named(each)}  {difference.pointer}  {difference.kind}"
            )
            if difference.before is not None:
                print(f"        recorded {flat(difference.before, 200)}")
            if difference.after is not None:
                print(f"        now      {flat(difference.after, 200)}")
        if each.more:
            print(f"        and {each.more} more differences")
    word, colour = ("DIFFERENT", "red") if different else ("SAME", "green")
    count = len(played) - len(skipped)
    left = f", {len(skipped)} left out" if skipped else ""
    print(f"{terminal.paint(word, colour, sys.stdout)}: {len(different)} of {count} answers differ{left}.")


def _named(each: Played) -> str:
    return flat(f"{each.exchange} {each.method}" + (f" {each.name}" if each.name else ""), 100)


def _described(each: Played) -> dict[str, Any]:
    return {
        "exchange": each.exchange,
        "method": each.method,
        "name": each.name,
        "same": each.is_same,
        "skipped": each.skipped,
        "differences": [
            {"pointer": d.pointer, "kind": d.kind, "recorded": d.before, "now": d.after} for d in each.differences
        ],
        "more": each.more,
    }
