"""Senders: each carries messages to people over one channel. They share the texts of a message, and nothing else."""
