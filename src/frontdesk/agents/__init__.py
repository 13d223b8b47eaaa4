"""Agents: one folder per way to reach one, found by name and imported by nobody."""
