"""The gateway profile: scripted servers behind any MCP gateway, scripted clients before it, and checks of what passes.

How to add a check:

1. A subclass of `Check` in the file of its theme, `checks/<family>/<theme>.py`; one that differs from others in a value shares their
   base class. The docstring has a title and the sections of every rule. `tools`, `prompts`, `resources` are what the servers then
   offer (`script.py`).
2. `play` sends requests through the `Lab` and records; it never decides. `judge` looks at the recording only and yields `Evidence`.
   A fidelity check needs neither: it has the texts, the base class sends and compares them.
3. Be fair: the check passes without a gateway, and prefixes, added `_meta` and additional tools of the gateway are no failure. `level`
   is MUST or SHOULD only where `spec` says so, else ADVICE: clients rely on it.
4. A switch in `tests/conformance/gateway/switches/<family>.py`: how a proxy breaks exactly this.
5. Two recordings, written by `make profile-recordings` with the check and its switch: `tests/conformance/gateway/fixtures/GWP-0NN`.
6. `make docs`. The tests find the rest: `tests/conformance/gateway/test_checks.py`.
"""
