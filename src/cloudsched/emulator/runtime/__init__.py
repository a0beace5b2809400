"""Runs the model in time: the dispatcher, the clock, HTTP delivery and the history."""
