"""GW-042."""

from __future__ import annotations

from pactgate.capture.format import Side
from pactgate.conformance.message import FROM_SERVER, RESPONSES, RecordedMessage
from pactgate.conformance.rule import RequirementLevel, quoted
from pactgate.conformance.schemas import ToolSchemaRule


class ArgumentsBreakSchema(ToolSchemaRule):
    """The arguments of a call fit the input schema the tool was listed with, or the server refuses them.

    What it checks
        The `arguments` of each `tools/call` are valid by the `inputSchema` of the latest listing. If they are not and the
        call succeeded all the same, the server did not validate, which is a MUST; if it was refused, the client is to blame.

    Why
        What the schema does not catch reaches code that relies on it.

    How to fix
        Server: validate every call. Client: list again when tools change, and check before sending.

    Reference
        Tools, Security Considerations; all revisions.
    """

    code = "GW-042"
    spec = "server/tools#security-considerations"
    category = "tools"
    member = "inputSchema"
    selects = RESPONSES & FROM_SERVER
    methods = frozenset({"tools/call"})

    def on_message(self, message: RecordedMessage) -> None:
        name = message.request_params().get("name")
        schema = self.schema_of(name)
        if schema is None or message.request is None:
            return
        self.seen += 1
        arguments = message.request_params().get("arguments")
        broken = schema.check({} if arguments is None else arguments)
        if broken is None:
            return
        place, why = broken
        was_refused = not message.is_success or message.result.get("isError") is True
        text = f"The arguments for {quoted(name)} break its input schema: {why}."
        if was_refused:
            self.fault(message.request, f"/params/arguments{place}", text, RequirementLevel.SHOULD)
        else:
            self.fault(
                message.request, f"/params/arguments{place}", f"{text} The server accepted them.", by=Side.SERVER
            )
