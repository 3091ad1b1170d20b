"""GWP-013."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import structured


class TextChanges(FidelityCheck):
    """Text of every script arrives.

    What it checks
        A tool answers with accents, emoji, a line separator, control characters and a combining sequence; the client gets the same
        characters.

    Why
        Normalising or re-encoding changes names of files, and digests.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again.

    Reference
        Nothing in the specification lets an intermediary change a result; all revisions.
    """

    code = "GWP-013"
    spec = "server/tools#tool-result"
    tools = (
        structured(
            "gwp013_@",
            '{"text":"caf\\u00e9e\\u0301 \\ud83d\\ude00 \\u2028 \\u0000 \\u001b \\/ \u4e16\u754c"}',
        ),
    )
    pointers = ("/structuredContent",)
