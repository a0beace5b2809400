"""Tasks that belong to other tasks: creating, notifying and cancelling them, and the tree they form.

May import `engine.dispatch`, `engine.state`, `engine.ports` and the domain.
"""
