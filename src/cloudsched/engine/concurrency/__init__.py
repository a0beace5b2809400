"""Threads that survive every error, and locks that survive a fork."""
