"""Adapters to the outside, each behind a port of the engine: stores, queues, clocks, blobs, interpreters.

An adapter knows `engine.ports` and the domain, and no other adapter. `google` holds what Google's adapters share.
"""
