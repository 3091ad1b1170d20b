"""GW-043."""

from __future__ import annotations

from pactgate.capture.format import Side
from pactgate.conformance.message import FROM_SERVER, RESULTS, RecordedMessage
from pactgate.conformance.methods import MADE_UP
from pactgate.conformance.rule import RequirementLevel, SessionRule, quoted


class ToolNeverListed(SessionRule):
    """A tool that can be called was listed.

    What it checks
        Each `tools/call` that succeeded names a tool that some `tools/list` before it showed. Where nothing was listed, or
        not to the last page, that can't be told.

    Why
        A tool nobody can see can't be reviewed, approved or found; it may be a door left open.

    How to fix
        List what can be called, and refuse other names with -32602.

    Reference
        Tools, Listing Tools, Error Handling; all revisions.
    """

    code = "GW-043"
    spec = "server/tools#error-handling"
    category = "tools"
    level = RequirementLevel.SHOULD
    selects = RESULTS & FROM_SERVER
    methods = frozenset({"tools/call"})

    def on_message(self, message: RecordedMessage) -> None:
        name = message.request_params().get("name")
        is_error = message.result.get("isError") is True
        if is_error or not isinstance(name, str) or message.request is None:
            return
        if self.session.head.is_probe and name.startswith(MADE_UP):
            return  # nobody can call it: GW-052 says that the server answers it all the same
        listing = self.session.lists["tools/list"]
        if name in listing.ever:
            self.seen += 1
        elif not listing.is_whole:
            self.unjudged("The capture does not list the tools to the end before they are called.")
        else:
            text = f"The tool {quoted(name)} was never listed, but can be called."
            self.fault(message.request, "/params/name", text, by=Side.SERVER)
