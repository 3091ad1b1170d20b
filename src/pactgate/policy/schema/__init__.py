"""JSON Schemas of tools: compiled once, checked within bounds."""
