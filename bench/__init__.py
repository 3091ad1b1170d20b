"""Measures the CPU time of a call through the gateway, beside the same call without it: `python -m bench`."""
