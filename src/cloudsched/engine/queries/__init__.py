"""What callers ask about tasks and runs: lists, searches, counts and explanations.

Nothing here changes anything.
"""
