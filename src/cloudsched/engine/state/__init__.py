"""Turns decisions into stored state: commits with their consequences, locks, and the log of what changed."""
