"""Pull queues: work that is offered to workers, and the claims that workers make.

May import `engine.execution` and what is below it.
"""
