"""GWP-028."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool


class BinaryContentChanges(FidelityCheck):
    """Images and audio arrive.

    What it checks
        A tool answers with an image and an audio block; the client gets the same data and media types.

    Why
        Re-encoding, or a check of the data, loses pictures.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again.

    Reference
        Tools, Tool Result; audio since 2025-03-26.
    """

    code = "GWP-028"
    spec = "server/tools#tool-result"
    tools = (
        ScriptedTool(
            name="gwp028_@",
            result='"content":[{"type":"image","data":"AAECAwQFBgc=","mimeType":"image/x-gwp"},'
            '{"type":"audio","data":"/+7dzLuqmYg=","mimeType":"audio/x-gwp"}]',
        ),
    )
    pointers = ("/content",)
