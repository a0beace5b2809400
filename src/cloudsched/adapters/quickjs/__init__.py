"""The script interpreter on QuickJS: one sandboxed process for each script.

May import `engine.ports` and the domain. `child.py` runs in the sandboxed process and imports neither.
"""
