"""How decisions become stored state: commits with what follows from them, locks, and the log of what changed.

May import `engine.dispatch`, `engine.durable`, `engine.ports` and the domain.
"""
