"""The platforms: one folder each, found by name, imported by nobody."""
