"""GW-033."""

from __future__ import annotations

from pactgate.capture.format import Side
from pactgate.conformance.message import RecordedMessage, Role
from pactgate.conformance.rule import HttpRule, ModernRule, pointer, quoted
from pactgate.protocol.headers import check_mirror, header_params


class ParamHeaderMismatch(ModernRule, HttpRule):
    """Arguments that a tool wants in headers are there, as the tool was listed, and listed annotations are valid.

    What it checks
        Each `x-mcp-header` in a listed `inputSchema` follows the rules. Each `tools/call` over HTTP has the `Mcp-Param-*`
        headers that the latest listing asks for, equal to its arguments, or is refused with 400 and -32020.

    Why
        As with the other headers: who routes by them must be able to rely on them.

    How to fix
        Client: mirror by the latest `tools/list`, and drop tools whose annotations are invalid. Server: compare.

    Reference
        Streamable HTTP, Custom Headers; revision 2026-07-28.
    """

    code = "GW-033"
    spec = "basic/transports/streamable-http#custom-headers-from-tool-parameters"
    methods = frozenset({"tools/list", "tools/call"})

    def on_message(self, message: RecordedMessage) -> None:
        if message.view.exchange.http is None:
            return
        if message.method == "tools/list":
            if message.role is Role.RESPONSE and message.is_success:
                self._check_annotations(message)
        elif message.role is Role.REQUEST and message.is_from_client:
            self._check_call(message)

    def _check_annotations(self, message: RecordedMessage) -> None:
        for name, item in self.session.lists["tools/list"].items.items():
            if item.message is message:
                self.seen += 1
                params = header_params(item.definition.get("inputSchema"))
                if isinstance(params, str):
                    place = pointer("result", "tools", item.number, "inputSchema")
                    self.fault(message, place, f"The tool {quoted(name)}: {params}.")

    def _check_call(self, message: RecordedMessage) -> None:
        http, name = message.view.exchange.http, message.params.get("name")
        item = self.session.lists["tools/list"].items.get(name) if isinstance(name, str) else None
        if item is None:
            self.unjudged("A tool was called that the capture does not list before.")
            return
        params = header_params(item.definition.get("inputSchema"))
        if http is None or isinstance(params, str):
            return
        self.seen += 1
        wrong = check_mirror(params, message.params.get("arguments"), http.request_headers)
        if wrong is not None and not message.view.is_refused_for_headers:
            self.fault(message, "/params/arguments", f"{wrong} The server did not refuse it.", by=Side.SERVER)
