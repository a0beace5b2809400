"""Dispatches on their way to the queue: sending, signing and tracing them.

May import `engine.ports` and the domain.
"""
