"""People: their contacts and preferences, how an address is verified, and how to stop what they get.

May import ports, tasks and the domain.
"""
