"""The proof of each file stands beside its name: `tests/<package>/test_<module>.py`."""
