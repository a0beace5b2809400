"""Jobs of other schedulers: their files are read here, and become declared tasks.

Like all of `cli`, it may import everything.
"""
