"""What a Python file says of the packages it needs, in a comment at its top (PEP 723). Pure."""

from __future__ import annotations

import re
import tomllib
from typing import Final

import msgspec
from msgspec import Struct

_BLOCK: Final = re.compile(r"^# /// script$\s(?P<content>(^#(| .*)$\s)+)^# ///$", re.MULTILINE)
"""As the specification of inline script metadata has it, for the one type that it defines."""
MAX_CHARS: Final = 64 * 1024


class ScriptMetadata(Struct, frozen=True, rename="kebab"):
    """`requires_python` is a version specifier, as `>=3.12`."""

    dependencies: tuple[str, ...] = ()
    requires_python: str | None = None


def read_script_metadata(text: str) -> ScriptMetadata | None:
    """The block in the first `MAX_CHARS` of a file; None where there is none. Raises ValueError for one that can't be read."""
    found = _BLOCK.findall(text[:MAX_CHARS])
    if not found:
        return None
    if len(found) > 1:
        raise ValueError("it has two blocks `# /// script`")
    content = "".join(line[2:] if line.startswith("# ") else line[1:] for line in found[0][0].splitlines(keepends=True))
    try:
        return msgspec.convert(tomllib.loads(content), ScriptMetadata)
    except msgspec.ValidationError as problem:
        raise ValueError(str(problem)) from None
