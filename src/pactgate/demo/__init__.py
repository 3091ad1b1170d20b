"""The servers of the gateway that is started without a configuration: two MCP servers, a file of Python tools and a REST API.

They run as child processes, such as `python -m pactgate.demo.almanac`. Must not: import anything of the gateway but the revision table.
"""
