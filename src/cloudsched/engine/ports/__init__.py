"""The ports of the engine: store, queue, clock, listener, blobs, interpreter.

Each port is a protocol whose docstring lists its guarantees, with one contract suite for all its adapters. May import
the domain.
"""
