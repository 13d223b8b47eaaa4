"""Confirmation of dangerous actions by people."""
