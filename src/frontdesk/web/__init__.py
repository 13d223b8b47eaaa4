"""HTTP: the public port for channels and health, and the socket of the owner."""
