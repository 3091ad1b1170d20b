"""Text of others, made safe to show: nothing in it moves a cursor, hides or reorders text.

Everything that the gateway prints, logs or reports, and that came from a server, a client or a file, goes through here, after
`core.masking`. Must not: be used on results that are passed on; the gateway forwards these as they are.
"""

from __future__ import annotations

import re
from typing import Final

from pactgate.core.hidden_characters import HIDDEN

SHORT_ID_CHARS: Final = 8
"""So much of a request id is shown to people; `pactgate explain` takes it."""
_UNFIT: Final = re.compile("[\r\ud800-\udfff]|" + HIDDEN)
"""Hidden characters, carriage returns, and lone surrogates, which can't be written."""
_BREAKS: Final = re.compile(r"[\t\n]+ *| {2,}")


def visible(text: str) -> str:
    """The text with unfit characters spelt out (`\\x1b`, `\\u202e`). Line feeds and tabs stay."""
    return _UNFIT.sub(_spelt, text)


def flat(text: str, max_chars: int) -> str:
    """The text as one line of bounded length."""
    return cut(_BREAKS.sub(" ", visible(text[: 4 * max_chars])).strip(), max_chars)


def cut(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def _spelt(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
