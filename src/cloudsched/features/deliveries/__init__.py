"""Deliveries: what the end of an execution sends: messages to people, and callbacks and pings to programs.

It adds the fields of callbacks and pings, the options that create deliveries in the commits that they
follow from, and what the API reports of them. The tasks that deliver run a handler of people's.
"""
