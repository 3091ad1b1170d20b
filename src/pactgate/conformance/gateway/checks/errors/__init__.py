"""Failures stay failures, and say no more than they should."""
