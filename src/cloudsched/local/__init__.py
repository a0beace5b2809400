"""The local stack: API, executor, sweep, queue and store in one process, for a laptop.

Also loads a user's file of handlers and explains why it cannot be imported. May import everything except the
commands.
"""
