"""Send dispatches to the queue, signed and traced.

May import `engine.ports` and the domain.
"""
