"""Signing in to servers that want OAuth: what is sent and what an answer means, as steps without input or output.

Each flow is a generator: it yields a `Fetch` and is given the `Fetched`. `fetcher.py` runs the steps with our HTTP client, and
`server_grant.py` keeps the token of one server. Must not: send a client's own token to a server, or show a token in a message.
"""
