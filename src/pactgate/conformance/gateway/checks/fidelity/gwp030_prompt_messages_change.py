"""GWP-030."""

from __future__ import annotations

import json

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.script import ScriptedPrompt, named


class PromptMessagesChange(FidelityCheck):
    """The messages of a prompt arrive.

    What it checks
        A prompt has two messages, a text and an image; the client gets both, in this order, with the description.

    Why
        A prompt is a text that somebody wrote with care.

    How to fix
        Pass the messages on.

    Reference
        Prompts, Getting a Prompt; all revisions.
    """

    code = "GWP-030"
    spec = "server/prompts#getting-a-prompt"
    prompts = (
        ScriptedPrompt(
            name="gwp030_@",
            result='"description":"d","messages":[{"role":"user","content":{"type":"text","text":"a\\n"}},'
            '{"role":"assistant","content":{"type":"image","data":"R0lGODlhAQABAAAAACw=","mimeType":"image/gif"}}]',
        ),
    )
    pointers = ("/description", "/messages")

    async def play(self, lab: Lab) -> None:
        for route in lab.routes(self):
            client, name = await lab.client(route), lab.exposed(route, self.prompts[0].name, "prompts/list")
            if lab.gateway.find(route, "prompts/list", self.prompts[0].name) is None:
                raise NotApplicableError("It lists no prompt of a server.")
            label = named(self.prompts[0].name, route.server)
            await client.request(
                lab.record_on(route), "prompts/get", f'"name":{json.dumps(name)}', name=name, label=label
            )
