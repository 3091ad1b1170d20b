"""GW-040."""

from __future__ import annotations

import re
from typing import Any, Final

from pactgate.conformance.bounded import BoundedDict
from pactgate.conformance.message import FROM_SERVER, RESULTS, RecordedMessage, as_list
from pactgate.conformance.rule import RequirementLevel, SessionRule, pointer, quoted
from pactgate.conformance.schemas import RecordedSchema

_MAX_COMPILED: Final = 5000
_LEGAL_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class ToolListFaulty(SessionRule):
    """Listed tools have a name of their own, in legal characters, valid schemas, and the same order every time.

    What it checks
        Each tool is an object with a text as name and an `inputSchema` that is valid JSON Schema of the type object; an
        `outputSchema` is valid too. Names should be unique, of 1 to 128 letters, digits, `_`, `-` and `.`; and two equal
        listings should have the same order.

    Why
        One tool with a broken schema makes some clients refuse the whole list. An order that changes spoils prompt caches.

    How to fix
        Validate definitions when the server starts, and sort the list.

    Reference
        Tools, Listing Tools, Tool Names; all revisions.
    """

    code = "GW-040"
    spec = "server/tools#listing-tools"
    category = "tools"
    selects = RESULTS & FROM_SERVER
    methods = frozenset({"tools/list"})

    def prepare(self) -> None:
        self._names: BoundedDict[bool] = BoundedDict()
        self._checked: BoundedDict[Any] = BoundedDict(limit=10_000)
        self._order: list[str] | None = None
        self._compiled = 0

    def on_message(self, message: RecordedMessage) -> None:
        if not self.session.is_page(message):
            return
        self.seen += 1
        if "cursor" not in message.request_params():
            self._names = BoundedDict()
        tools = message.result.get("tools")
        if not isinstance(tools, list):
            self.fault(message, "/result/tools", f"tools is {quoted(tools)}, not an array.")
        for number, tool in enumerate(as_list(tools)):
            place = pointer("result", "tools", number)
            if isinstance(tool, dict):
                self._check_name(message, place, tool.get("name"))
                if self._checked.get(tool.get("name") if isinstance(tool.get("name"), str) else None) != tool:
                    self._check_schemas(message, place, tool)
            else:
                self.fault(message, place, f"The tool is {quoted(tool)}, not an object.")
        listing = self.session.lists["tools/list"]
        if listing.is_whole:
            if self._order is not None and self._order != listing.names and set(self._order) == set(listing.names):
                self.fault(
                    message, "/result/tools", "The tools are in another order than before.", RequirementLevel.SHOULD
                )
            self._order = listing.names

    def _check_name(self, message: RecordedMessage, place: str, name: Any) -> None:
        if not isinstance(name, str):
            self.fault(message, f"{place}/name", f"The name of the tool is {quoted(name)}, not a text.")
            return
        if name in self._names:
            self.fault(message, f"{place}/name", f"The tool {quoted(name)} is listed twice.", RequirementLevel.SHOULD)
        elif not _LEGAL_NAME.fullmatch(name):
            text = f"The name {quoted(name)} is not made of 1 to 128 letters, digits, _, - and dots."
            self.fault(message, f"{place}/name", text, RequirementLevel.SHOULD)
        self._names[name] = True

    def _check_schemas(self, message: RecordedMessage, place: str, tool: dict[str, Any]) -> None:
        name = tool.get("name")
        if isinstance(name, str):
            self._checked[name] = tool
        schema = tool.get("inputSchema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            text = f'The inputSchema of {quoted(name)} is not a schema of the type "object".'
            self.fault(message, f"{place}/inputSchema", text)
            return
        self._compiled += 1
        if self._compiled > _MAX_COMPILED:
            self.unjudged(f"There are more than {_MAX_COMPILED} schemas.")
            return
        for member in ("inputSchema", "outputSchema"):
            compiled = RecordedSchema(tool[member]) if tool.get(member) is not None else None
            if compiled is not None and compiled.invalid is not None:
                self.fault(
                    message, f"{place}/{member}", f"The {member} of {quoted(name)} is invalid: {compiled.invalid}."
                )
            elif compiled is not None and compiled.unjudged is not None:
                self.unjudged(f"The {member} of {quoted(name)}: {compiled.unjudged}.")
