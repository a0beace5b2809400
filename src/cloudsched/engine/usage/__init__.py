"""What owners use: summed up from what their tasks have counted, and limited by budgets.

May import locks, ports and the log; not the execution of attempts.
"""
