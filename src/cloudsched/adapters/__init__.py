"""Adapters to the outside, each behind a port of the engine: stores, queues, clocks, blobs, interpreters."""
