"""Values in a result arrive as they were sent: numbers, nulls, text, order, depth."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool, structured


class BigIntegersChange(FidelityCheck):
    """An integer beyond 2^53 arrives with all its digits.

    What it checks
        A tool answers with 9007199254740993, 18446744073709551616 and -9223372036854775809 in its structured content; the client
        gets the same integers.

    Why
        Identifiers are such numbers. A gateway that reads them as floating point hands out the identifier of something else.
    """

    code = "GWP-001"
    tools = (
        structured(
            "gwp001_@",
            '{"one":9007199254740993,"two":18446744073709551616,"three":-9223372036854775809}',
        ),
    )
    pointers = ("/structuredContent",)


class HugeNumbersChange(FidelityCheck):
    """A number beyond the range of a double arrives as it was sent.

    What it checks
        A tool answers with 1e400, 1e-400 and a number of eighty digits; the client gets the same numbers, neither infinity nor zero
        nor text.

    Why
        JSON sets no bound to a number. A gateway that reads it as a double writes text that is no JSON, or another number.
    """

    code = "GWP-002"
    tools = (
        structured(
            "gwp002_@",
            '{"huge":1e400,"tiny":1e-400,"long":' + "7" * 80 + "}",
        ),
    )
    pointers = ("/structuredContent",)


class NumberNotationChanges(FidelityCheck):
    """A number keeps its notation.

    What it checks
        A tool answers with 1.0, 1, 1E+2, 0.30000000000000004 and -0; the client gets the same digits.

    Why
        Some languages tell integers and floating point numbers apart by the notation, and signatures and digests are made of the
        text.
    """

    code = "GWP-003"
    tools = (
        structured(
            "gwp003_@",
            '{"float":1.0,"integer":1,"exponent":1E+2,"digits":0.30000000000000004,"minus":-0}',
        ),
    )
    pointers = ("/structuredContent",)
    as_written = True


class NullsVanish(FidelityCheck):
    """A member that is null arrives as null.

    What it checks
        A tool answers with members that are null, in an object and in an array; the client gets them.

    Why
        Null says that a value is known to be absent, and is required by many schemas. Serialisers that drop it break them.
    """

    code = "GWP-004"
    tools = (
        structured(
            "gwp004_@",
            '{"none":null,"list":[null,1,null],"deep":{"none":null}}',
        ),
    )
    pointers = ("/structuredContent",)


class MemberOrderChanges(FidelityCheck):
    """The members of an object arrive in their order.

    What it checks
        A tool answers with an object whose members are in no alphabetical order; the client gets them in this order.

    Why
        Models read the text from the beginning, prompt caches and digests compare it byte by byte.
    """

    code = "GWP-005"
    tools = (
        structured(
            "gwp005_@",
            '{"zebra":1,"apple":2,"10":3,"2":4,"mango":{"z":1,"a":2}}',
        ),
    )
    pointers = ("/structuredContent",)
    as_written = True


class EmptyValuesVanish(FidelityCheck):
    """Empty strings, arrays and objects arrive.

    What it checks
        A tool answers with an empty text, array, object and an empty member name; the client gets them.

    Why
        Empty is an answer: no rows, no text. Serialisers that drop it break schemas with `required`.
    """

    code = "GWP-012"
    tools = (structured("gwp012_@", '{"text":"","list":[],"object":{},"":"empty name"}'),)
    pointers = ("/structuredContent",)


class TextChanges(FidelityCheck):
    """Text of every script arrives.

    What it checks
        A tool answers with accents, emoji, a line separator, control characters and a combining sequence; the client gets the same
        characters.

    Why
        Normalising or re-encoding changes names of files, and digests.
    """

    code = "GWP-013"
    tools = (
        structured(
            "gwp013_@",
            '{"text":"caf\\u00e9e\\u0301 \\ud83d\\ude00 \\u2028 \\u0000 \\u001b \\/ \u4e16\u754c"}',
        ),
    )
    pointers = ("/structuredContent",)


class LoneSurrogatesBreak(FidelityCheck):
    """Half a surrogate pair does not break the result.

    What it checks
        A tool answers with the escape of half a surrogate pair; the client gets a result, and the text beside it.

    Why
        Servers that cut text by length send such escapes. JSON allows them; a gateway that fails at them loses the whole result.
    """

    code = "GWP-014"
    tools = (structured("gwp014_@", '{"half":"\\ud83d","beside":"whole"}'),)
    runs_alone = True
    """A gateway may lose its connection to the server by such an answer; that is told once."""
    answer_s = 6.0
    """The gateways that give no answer should not cost a run its time."""
    pointers = ("/structuredContent/beside",)


class BinaryContentChanges(FidelityCheck):
    """Images and audio arrive.

    What it checks
        A tool answers with an image and an audio block; the client gets the same data and media types.

    Why
        Re-encoding, or a check of the data, loses pictures.

    Reference
        Tools, Tool Result; audio since 2025-03-26.
    """

    code = "GWP-028"
    tools = (
        ScriptedTool(
            name="gwp028_@",
            result='"content":[{"type":"image","data":"AAECAwQFBgc=","mimeType":"image/x-gwp"},'
            '{"type":"audio","data":"/+7dzLuqmYg=","mimeType":"audio/x-gwp"}]',
        ),
    )
    pointers = ("/content",)


class DeepResultsBreak(FidelityCheck):
    """A result of fifty levels arrives.

    What it checks
        A tool answers with an array nested fifty times; the client gets it.

    Why
        Trees, syntax and documents are as deep.

    How to fix
        Raise the limit, or refuse what is deeper with an error that says so.
    """

    code = "GWP-032"
    tools = (
        structured(
            "gwp032_@",
            '{"deep":' + "[" * 50 + "]" * 50 + "}",
        ),
    )
    pointers = ("/structuredContent",)
