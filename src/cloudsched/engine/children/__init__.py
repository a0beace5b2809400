"""Tasks that belong to other tasks: creating, notifying and cancelling them, and the tree they form.

May import `engine.engine_context` and what is below it.
"""
