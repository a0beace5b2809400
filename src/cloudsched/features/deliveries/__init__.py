"""Deliveries: what the end of an execution sends, to people by channels, and to programs as callbacks and pings.

It adds the fields of callbacks and pings, the options that create deliveries in the commits that they
follow from, and what the API reports of them. The tasks that deliver run a handler of people's.
"""
