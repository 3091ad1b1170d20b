"""`pactgate replay`: serve a capture as a server, or send its requests to a live server and compare the responses.

Exit codes: 0 served to the end, or no difference; 1 differences, or a capture or server that can't be used; 2 wrong invocation. While
serving, standard output belongs to the protocol and messages go to standard error.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Final, NamedTuple

import click

from pactgate.capture.format import CaptureError, read
from pactgate.capture.replay_client import ReplayClient, ReplayedCall
from pactgate.capture.replay_server import CaptureTooLargeError, RecordedCall, ReplayServer, recorded_in
from pactgate.capture.source import chunks_of
from pactgate.cli import terminal
from pactgate.cli.errors import CommandError
from pactgate.cli.live_target import label, target_of
from pactgate.cli.shared_options import header_option, json_option
from pactgate.conformance.probe import ProbeTarget, connected
from pactgate.core.display import flat, visible
from pactgate.core.failures import GatewayFailure

_MAX_SESSIONS: Final = 1000


class ChosenSession(NamedTuple):
    """One session of a capture: its label and its requests with their responses."""

    number: int
    name: str
    recorded: list[RecordedCall]


@click.command(
    epilog="""\
\b
Examples:
  pactgate replay session.json
  pactgate replay session.json --against http://127.0.0.1:8000/mcp
""",
)
@click.argument("capture")
@click.argument("target", metavar="[URL | -- COMMAND...]", nargs=-1)
@click.option("--against", is_flag=True, help="Send the requests to a server and show where the responses differ.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT", help="Serve over HTTP instead of stdio.")
@click.option("--session", metavar="N|LABEL", help="Which session, if the capture has several.")
@header_option
@json_option
def replay(
    *,
    capture: str,
    target: tuple[str, ...],
    against: bool,
    port: int | None,
    session: str | None,
    headers: tuple[str, ...],
    as_json: bool,
) -> int:
    """Replay a recorded session: serve it as the server did, or send its requests to a server and compare the responses.

    CAPTURE is the file. With --against, URL or COMMAND is the server. Requests are sent as recorded.
    """
    if not against and (target or headers):
        raise CommandError("A server is only needed with --against.")
    if against and port is not None:
        raise CommandError("Give --port or --against, not both.")
    live = target_of(target, headers) if against else None
    try:
        chosen = load_session(capture, session)
    except (CaptureError, CaptureTooLargeError) as problem:
        raise CommandError(str(problem), exit_code=1) from None
    if live is None:
        return _serve(capture, chosen, port)
    try:
        played = asyncio.run(_play(chosen, live))
    except GatewayFailure as failure:
        raise CommandError(f"{label(live)} can't be used: {failure.message}", exit_code=1) from None
    _report(chosen, label(live), played, as_json=as_json)
    return 0 if all(each.is_same for each in played) else 1


def load_session(path: str, wanted: str | None) -> ChosenSession:
    """The session with that number or label; without one, the only session of the capture."""
    found: list[ChosenSession] = []
    for session in read(chunks_of(path)):
        found.append(ChosenSession(session.index + 1, session.head.label, list(recorded_in(session))))
        if len(found) > _MAX_SESSIONS:
            raise CommandError(f"{path} has more than {_MAX_SESSIONS} sessions.")
    fitting = [each for each in found if wanted in (None, str(each.number), each.name)]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(f"{each.number} ({each.name}, {len(each.recorded)} responses)" for each in found[:20])
    raise CommandError(f"{path} has {len(found)} sessions.", f"Choose one with --session: {names}." if names else "")


def _serve(path: str, chosen: ChosenSession, port: int | None) -> int:
    cassette = ReplayServer(chosen.recorded)
    print(
        f"pactgate replay: {visible(chosen.name)} from {visible(path)}, {cassette.count} recorded responses; "
        "no real server is used",
        file=sys.stderr,
        flush=True,
    )
    if port is None:
        return _serve_stdio(cassette)
    from pactgate.cli.replay_http import serve

    return asyncio.run(serve(cassette, port))


def _serve_stdio(cassette: ReplayServer) -> int:
    for line in sys.stdin.buffer:
        answer = cassette.answer_encoded(line)
        if answer is not None:
            sys.stdout.buffer.write(answer + b"\n")
            sys.stdout.buffer.flush()
    return 0


async def _play(chosen: ChosenSession, target: ProbeTarget, timeout_s: float = 60.0) -> list[ReplayedCall]:
    async with connected(target, None, timeout_s) as session:
        return await ReplayClient(session, timeout_s).play(chosen.recorded)


def _report(chosen: ChosenSession, server: str, played: list[ReplayedCall], *, as_json: bool) -> None:
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
    left = f", {len(skipped)} skipped" if skipped else ""
    print(f"{terminal.paint(word, colour, sys.stdout)}: {len(different)} of {count} responses differ{left}.")


def _named(each: ReplayedCall) -> str:
    return flat(f"{each.exchange} {each.method}" + (f" {each.name}" if each.name else ""), 100)


def _described(each: ReplayedCall) -> dict[str, Any]:
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
