"""What `make test` runs: every test, in two processes side by side, and after them, alone, the tests that measure.

Tests that start programs wait more than they work, so they run beside the others. Journeys and benchmarks compare times and processor
shares, and have the machine to themselves. With arguments it is `pytest` with these arguments and nothing else.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parent.parent / "tests"
STARTS_PROGRAMS: Final = ("cli", "interop")
MEASURES: Final = ("bench", "journeys")


def main(words: list[str]) -> int:
    if words:
        return _pytest(words)
    folders = sorted(
        path.name for path in TESTS.iterdir() if any(path.glob("test_*.py")) or any(path.glob("*/test_*.py"))
    )
    apart = (*STARTS_PROGRAMS, *MEASURES)
    others = [*(f"tests/{name}" for name in folders if name not in apart), *(str(file) for file in _loose())]
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        beside = subprocess.Popen(_command([f"tests/{name}" for name in STARTS_PROGRAMS]), stdout=said, stderr=said)
        try:
            codes = [_pytest(others), beside.wait()]
        finally:
            beside.kill()
            beside.wait()
        said.seek(0)
        print(said.read(), flush=True)
    codes.append(_pytest([f"tests/{name}" for name in MEASURES]))
    print(
        f"all tests: {'passed' if not any(codes) else 'FAILED, see above'}, {time.monotonic() - began:.0f} s",
        flush=True,
    )
    return max(codes, key=abs)


def _loose() -> list[Path]:
    """Tests that belong to no folder."""
    return sorted(file.relative_to(TESTS.parent) for file in TESTS.glob("test_*.py"))


def _pytest(words: list[str]) -> int:
    return subprocess.run(_command(words), check=False).returncode


def _command(words: list[str]) -> list[str]:
    return [sys.executable, "-m", "pytest", *words]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
