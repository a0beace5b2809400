"""Registered functions: the registry, the context they are given, and the built-in handlers.

May import `engine.state` and what is below it.
"""
