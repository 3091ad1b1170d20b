"""`make profile-recordings ARGS=GWP-001`: play checks with and without their fault, and keep the recordings that the tests judge.

Without arguments, the checks that have no recordings yet. Each check is played alone on servers of its own, so that a recording has
nothing of others in it.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from pathlib import Path

import msgspec
from msgspec.structs import replace

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks import BY_CODE, CHECKS
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.results import judge_one
from tests.conformance.gateway.playing import play_started, playground, servers_of, without_patience
from tests.conformance.gateway.switches import SWITCHES

FIXTURES = Path(__file__).parent / "fixtures"
LONG = re.compile(r"((?:0123456789abcdef){1024})+")
"""The large results are made small: what is long stays longer than what is short."""
READ = ("authorization", "cookie", "mcp-method", "mcp-name", "mcp-protocol-version", "www-authenticate")
"""The headers that checks of tracing and auth read."""


async def record(check: type[Check]) -> None:
    if check.family is Family.OWNERSHIP:
        for kind in ("pass", "fail"):
            keep(check, kind, await play_started(check, leaves=kind == "fail"))
        return
    with tempfile.TemporaryDirectory() as folder, without_patience():
        async with playground(Path(folder), [check], gateway=check.needs_gateway, tags=servers_of(check)) as ground:
            for kind, switch in (("pass", None), ("fail", SWITCHES[check.code])):
                keep(check, kind, await ground.play(check, switch))


def keep(check: type[Check], kind: str, played: CheckRecording) -> None:
    recording = small(played)
    assert judge_one(check, recording).status.value == kind, (check.code, kind, recording.error)
    path = FIXTURES / check.code / f"{kind}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(written(recording), encoding="ascii")


def written(recording: CheckRecording) -> str:
    """One line for each message, without what is empty."""
    frames = []
    for frame in recording.frames:
        members = msgspec.to_builtins(frame)
        optional = ("label", "exchange", "route", "status", "headers")
        frames.append(json.dumps({name: value for name, value in members.items() if value or name not in optional}))
    return f'{{"code": "{recording.code}", "frames": [\n{f",{chr(10)}".join(frames)}\n]}}\n'


def small(recording: CheckRecording) -> CheckRecording:
    """With times from the beginning, without long texts and without the headers that no check reads."""
    begun = recording.frames[0].at if recording.frames else 0.0
    has_headers = BY_CODE[recording.code].family is Family.TRACING
    frames = [
        replace(
            frame,
            at=round(frame.at - begun, 3),
            data=LONG.sub(shortened, frame.data),
            headers=tuple(pair for pair in frame.headers if is_read(pair[0].lower())) if has_headers else (),
        )
        for frame in recording.frames
    ]
    return replace(recording, frames=tuple(frames))


def is_read(name: str) -> bool:
    return name in READ or name.startswith("mcp-param-")


def shortened(found: re.Match[str]) -> str:
    return "0123456789abcdef" * (len(found[0]) // 16384)


async def main(words: list[str]) -> None:
    for check in CHECKS:
        if check.code in words or not (words or (FIXTURES / check.code / "fail.json").is_file()):
            await record(check)
            print(f"recorded {check.code}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
