"""The same server over stdio, one JSON message per line: `python -m bench.upstream_stdio --tools T`.

A plain read loop: the responses to all messages of one read go out in one write. The process ends when its input ends.
"""

from __future__ import annotations

import argparse
import heapq
import os
import select
import time

from bench.answers import DelayedAnswer, Upstream

_READ_BYTES = 1024 * 1024


def serve(upstream: Upstream) -> None:
    rest = b""
    due: list[tuple[float, int, bytes]] = []
    count = 0
    while True:
        wait_s = max(0.0, due[0][0] - time.monotonic()) if due else None
        answers: list[bytes] = []
        if wait_s is None or select.select([0], [], [], wait_s)[0]:
            data = os.read(0, _READ_BYTES)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                answer = upstream.answer(line) if line.strip() else None
                if isinstance(answer, DelayedAnswer):
                    count += 1
                    heapq.heappush(due, (time.monotonic() + answer.delay_s, count, answer.answer))
                elif answer is not None:
                    answers.append(answer)
        while due and due[0][0] <= time.monotonic():
            answers.append(heapq.heappop(due)[2])
        if answers:
            _write(b"\n".join(answers) + b"\n")


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=int, default=23)
    parser.add_argument("--order", choices=["python", "typescript", "both"], default="python")
    options = parser.parse_args()
    serve(Upstream(options.tools, options.order))


if __name__ == "__main__":
    main()
