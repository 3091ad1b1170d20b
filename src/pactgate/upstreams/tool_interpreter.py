"""The interpreter that runs a file of Python tools: ours, the one that the configuration names, or one that `uv` makes for the file.

An interpreter of its own has its own packages. The gateway's are found after them, so that the runner need not be installed there.
Must not: run the file, or anything else.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import msgspec

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.script_metadata import MAX_CHARS, read_script_metadata

PACKAGE_FOLDER: Final = str(Path(__file__).resolve().parents[2])
"""Where the interpreter finds us; the runner must be able to read it, whatever it may do otherwise."""
_LIBRARY_FOLDER: Final = str(Path(msgspec.__file__).resolve().parents[1])
_START: Final = f"""\
import sys
sys.path += {[*dict.fromkeys((PACKAGE_FOLDER, _LIBRARY_FOLDER))]!r}
try:
    from pactgate.runner.__main__ import main
except ImportError as problem:
    sys.exit(f"{{sys.executable}} needs msgspec to run Python tools, for its own version of Python: {{problem}}")
sys.exit(main())
"""


def interpreter_of(file: str, python: str | None) -> tuple[str, ...]:
    """The command that runs `pactgate.runner` for this file; its options come after it. Raises GatewayFailure.

    `python` is the interpreter that the configuration names; it goes before what the file itself says it needs (PEP 723).
    """
    if python is not None:
        return (python, "-P", "-c", _START)
    try:
        with open(file, encoding="utf-8", errors="replace") as source:
            needs = read_script_metadata(source.read(MAX_CHARS))
    except OSError:  # the runner says what is wrong with the file
        needs = None
    except ValueError as problem:
        message = f"The block `# /// script` of {file} can't be read: {problem}."
        raise GatewayFailure(Kind.INVALID_CONFIG, message, operation="connect", details={"permanent": True}) from None
    if needs is None:
        return (sys.executable, "-P", "-m", "pactgate.runner")
    version, packages = sys.executable, [*needs.dependencies]
    if needs.requires_python is not None:  # ours may be built for another version
        version, packages = needs.requires_python, [*packages, "msgspec"]
    wanted = [word for package in packages for word in ("--with", package)]
    start = ("python", "-P", "-c", _START)
    return ("uv", "run", "--quiet", "--no-project", "--python", version, *wanted, "--", *start)


def folders_of(python: str | None) -> tuple[str, ...]:
    """What a confined runner has to read beside the interpreter itself: our packages, and those of its virtual environment."""
    own = [PACKAGE_FOLDER]
    if python is not None:
        own += [_LIBRARY_FOLDER, os.path.dirname(os.path.dirname(os.path.abspath(python)))]
    return tuple(own)
