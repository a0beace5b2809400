"""What callers ask about tasks and runs: lists, searches, counts and explanations. Nothing here changes anything.

May import `engine.sweep` and what is below it.
"""
