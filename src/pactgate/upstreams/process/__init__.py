"""Servers that are child processes: stdio, their sandbox, and how they end."""
