"""What survives a restart: the write-ahead log, its records, and queue files.

May import `emulator.api` and `emulator.model`.
"""
