"""The sweep that repairs tasks (`sweeper.py`), shard by shard, and plans them again by newer time zone data."""
