"""The script interpreter on QuickJS: one sandboxed process for each script.

May import `engine.ports` and the domain. `child.py` and `sandbox.py` run in the sandboxed process and import neither.
"""
