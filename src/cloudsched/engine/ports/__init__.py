"""What the engine needs from outside: store, queue, clock, listener, blobs, interpreter, task counter.

Each port is a protocol that promises in bullets and has one contract suite for all its adapters. May import the domain.
"""
