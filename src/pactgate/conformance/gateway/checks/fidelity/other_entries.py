"""Resources and prompts arrive as they were sent."""

from __future__ import annotations

import json

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.script import ScriptedPrompt, ScriptedResource, named


class ResourceContentsChange(FidelityCheck):
    """The contents of a resource arrive.

    What it checks
        A resource is read that has a text, a blob, `_meta` and a member that nobody knows; the client gets all of it. The URI may
        be the gateway's own.

    Why
        A file that passes a gateway is the file.

    How to fix
        Pass the contents on; change URIs only.

    Reference
        Resources, Reading Resources; all revisions.
    """

    code = "GWP-029"
    spec = "server/resources#reading-resources"
    resources = (
        ScriptedResource(
            uri="gwp://gwp029/@",
            result='"contents":[{"uri":"gwp://gwp029/a","text":"line\\r\\n","mimeType":"text/x-gwp","_meta":{"example.com/a":1}},'
            '{"uri":"gwp://gwp029/b","blob":"AAECAwQFBgc="}]',
        ),
    )
    pointers = (
        "/contents/0/text",
        "/contents/0/mimeType",
        "/contents/0/_meta/example.com~1a",
        "/contents/1/blob",
    )

    async def play(self, lab: Lab) -> None:
        for route in lab.routes(self):
            client, uri = await lab.client(route), lab.exposed(route, self.resources[0].uri, "resources/list")
            if lab.gateway.find(route, "resources/list", self.resources[0].uri) is None:
                raise NotApplicableError("It lists no resource of a server.")
            label = named(self.resources[0].uri, route.server)
            await client.request(
                lab.record_on(route), "resources/read", f'"uri":{json.dumps(uri)}', name=uri, label=label
            )


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
