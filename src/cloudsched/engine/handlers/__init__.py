"""Registered functions: the registry, the context they are given, and the built-in handlers.

May import `engine.durable`, `engine.ports` and the domain.
"""
