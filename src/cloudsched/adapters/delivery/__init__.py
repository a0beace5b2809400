"""Senders: each carries messages to people over one channel. They share the texts of a message, and nothing else.

A sender is an adapter of `cloudsched.engine.ports.sender`. It imports its vendor when the first message is sent.
"""
