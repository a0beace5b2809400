"""Durable handlers: the journal of steps, calls, sleeps and events, and its replay.

May import `engine.ports` and the domain.
"""
