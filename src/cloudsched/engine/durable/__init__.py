"""Durable handlers: the journal of steps, calls, sleeps and events, and its replay."""
