"""Drivers: one process per client library reads a list of jobs from stdin and writes one JSON line for each."""
