"""Faults of fidelity."""

from __future__ import annotations

from tests.conformance.gateway.switches.words import error_for, swap, swap_request

SWITCHES = {
    "GWP-001": swap("9007199254740993", "9007199254740992"),
    "GWP-002": swap('"huge":1e400', '"huge":null'),
    "GWP-003": swap('"float":1.0', '"float":1'),
    "GWP-004": swap('{"none":null,"list"', '{"list"'),
    "GWP-005": swap('"zebra":1,"apple":2', '"apple":2,"zebra":1'),
    "GWP-006": swap(',"x-gwp":{"kept":[1,null]}', ""),
    "GWP-007": swap(',{"type":"hologram","layers":[1,2]}', ""),
    "GWP-008": swap('"annotations":{"audience":["user"],"priority":0.5,"x":1},', ""),
    "GWP-009": swap('"example.com/a":{"n":1,"none":null},', ""),
    "GWP-010": swap(',"structuredContent":{"a":1}', ""),
    "GWP-011": swap("0123456789abcdef" * 16384, ""),
    "GWP-012": swap('"list":[],', ""),
    "GWP-013": swap("e\\u0301", "\\u00e9"),
    "GWP-014": error_for("gwp014_"),
    "GWP-015": swap("-31999", "-32603"),
    "GWP-016": swap('"isError":true', '"isError":false'),
    "GWP-017": swap(',"x-gwp":{"kept":[1,null]}', ""),
    "GWP-018": swap('"destructiveHint":false,', ""),
    "GWP-019": swap(',"examples":[2]', ""),
    "GWP-020": swap('"minimum":1', '"minimum":0'),
    "GWP-021": swap('"title":"A title",', ""),
    "GWP-022": swap('"example.com/ui"', '"example.com/other"'),
    "GWP-023": swap_request("9007199254740993", "9007199254740992"),
    "GWP-024": swap_request('"none":null,', ""),
    "GWP-025": swap_request('"zebra":1.0,"apple":1', '"apple":1,"zebra":1'),
    "GWP-026": swap_request('"example.com/tenant"', '"example.com/other"'),
    "GWP-027": swap_request(',"x-gwp":{"kept":[1,null]}', ""),
    "GWP-028": swap("image/x-gwp", "application/octet-stream"),
    "GWP-029": swap("\\r\\n", "\\n"),
    "GWP-030": swap('"type":"image"', '"type":"text"'),
    "GWP-031": swap('"structuredContent":[1,"two",null]', '"structuredContent":{"result":[1,"two",null]}'),
    "GWP-032": swap("[[[[[[[[[[]]]]]]]]]]", "null"),
    "GWP-033": swap('{"type":"text","text":"1"},{"type":"text","text":"1"}', '{"type":"text","text":"1"}'),
    "GWP-034": swap(',"structuredContent":{"a":34}', ""),
}
