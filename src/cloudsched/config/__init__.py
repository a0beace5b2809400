"""Settings, read from the environment once and handed down as one frozen object.

The only place that reads environment variables. Imports `errors` and nothing else.
"""
