"""Nouns: frozen records, enums and their legal moves. Pure: no input, no output."""
