"""Scripts: JavaScript that users write in place of a handler, run in a sandbox, and kept by name.

It adds the handler of tasks with a script, the stored scripts of owners, and their operations of the API.
"""
