"""Turns decisions into stored state: commits with their consequences, quotas, and the log of what changed."""
