"""Tests of pactgate.protocol, and the corpus of bad input that other tests send over the wire."""
