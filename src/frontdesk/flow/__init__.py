"""Verbs, in the order a message travels."""
