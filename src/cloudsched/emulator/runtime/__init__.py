"""What makes the model move: the dispatcher, the clock, HTTP delivery and the history.

May import `emulator.api` and `emulator.model`.
"""
