"""The ports of the engine: store, queue, clock, listener, blobs, interpreter."""
