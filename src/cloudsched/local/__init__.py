"""The whole product in one process: the local stack for development, and `cloudsched serve` for one small server.

Also loads a user's file of handlers and explains why it cannot be imported. May import everything except the
commands.
"""
