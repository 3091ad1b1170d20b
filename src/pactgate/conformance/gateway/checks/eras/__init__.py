"""Clients and servers of both eras reach each other."""
