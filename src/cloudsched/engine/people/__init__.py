"""People: their contacts and preferences, how a webhook is verified, and how to stop what they get.

May import `engine.tasks` and what is below it.
"""
