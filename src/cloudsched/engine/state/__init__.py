"""How decisions become stored state: commits, locks, and the log of what changed.

May import `engine.ports` and the domain.
"""
