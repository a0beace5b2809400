"""What Google's services share (channels, retries, ID tokens), and the queue on Cloud Tasks.

May import `engine.ports` and the domain.
"""
