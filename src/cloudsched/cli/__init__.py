"""The command line: one file for each command, and the output that they share.

A command may import everything, and nothing imports a command. `main.py` imports one only when it is used, because
starting quickly matters more here than anywhere else.
"""
