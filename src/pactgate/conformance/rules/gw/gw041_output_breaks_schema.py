"""GW-041."""

from __future__ import annotations

from pactgate.capture.format import Body
from pactgate.conformance.message import FROM_SERVER, RESULTS, RecordedMessage
from pactgate.conformance.rule import quoted
from pactgate.conformance.schemas import ToolSchemaRule


class OutputBreaksSchema(ToolSchemaRule):
    """What a tool returns fits the output schema it was listed with.

    What it checks
        Where the latest listing of a tool has an `outputSchema`, a successful result that is no tool error has
        `structuredContent`, and it is valid; before 2026-07-28 it is also an object.

    Why
        Programs and models read structured content by that schema, and stop where it breaks.

    How to fix
        Validate before you send; or correct the schema.

    Reference
        Tools, Output Schema; revisions 2025-06-18 to 2026-07-28.
    """

    code = "GW-041"
    spec = "server/tools#output-schema"
    category = "tools"
    member = "outputSchema"
    since = "2025-06-18"
    selects = RESULTS & FROM_SERVER
    methods = frozenset({"tools/call"})

    def on_message(self, message: RecordedMessage) -> None:
        result, name = message.result, message.request_params().get("name")
        schema = None if _is_exempt(result) else self.schema_of(name)
        if schema is None:
            return
        self.seen += 1
        if "structuredContent" not in result:
            self.fault(
                message, "/result", f"The tool {quoted(name)} has an output schema but returned no structuredContent."
            )
            return
        value = result["structuredContent"]
        if not message.is_modern and not isinstance(value, dict):
            self.fault(message, "/result/structuredContent", f"structuredContent is {quoted(value)}, not an object.")
            return
        broken = schema.check(value)
        if broken is not None:
            place, why = broken
            text = f"The result of {quoted(name)} breaks its output schema: {why}."
            self.fault(message, f"/result/structuredContent{place}", text)


def _is_exempt(result: Body) -> bool:
    is_other_kind = result.get("resultType", "complete") != "complete" or isinstance(result.get("task"), dict)
    return is_other_kind or result.get("isError") is True
