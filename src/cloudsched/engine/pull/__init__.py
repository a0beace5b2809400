"""Work that waits for workers: offers, and the claims that workers make.

May import the execution of attempts, locks and ports.
"""
