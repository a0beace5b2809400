"""Senders: each carries messages to people over one channel. They share only the message."""
