"""The sweep repairs tasks (`sweeper.py`), shard by shard, and replans them by newer time zone data."""
