"""Stores: the intentions of the contract as SQL, written once for both dialects.

An intention is a generator that yields statements and receives rows. It never waits, so that the SQLite
writer can run it inside a group commit, while the PostgreSQL engine awaits each statement.
"""
