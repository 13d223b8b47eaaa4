"""E-mail: what is known about the platform; there is no channel yet."""
