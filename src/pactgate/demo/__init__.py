"""Small MCP servers of ours for the gateway that is started without a configuration: one of each era, and a file of Python tools.

They run as child processes (`python -m pactgate.demo.almanac`, `python -m pactgate.demo.scratchpad`) and are written on
the standard library and the revision table alone. Must not import anything else of ours: they stand on the other side
of the wire, and they have to start at once.
"""
