"""Registered functions: the registry, the context they are given, and the built-in handlers."""
