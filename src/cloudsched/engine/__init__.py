"""The engine loads documents, decides with the domain's functions, commits, and dispatches.

No vendor and no I/O of its own: everything outside is reached through `engine.ports`. May import the domain and errors.
"""
