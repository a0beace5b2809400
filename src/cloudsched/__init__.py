"""Durable scheduled tasks for Google Cloud, with no server to keep and a clock that tests can move."""
