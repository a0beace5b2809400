"""The built-in handler `assistant`: a language model does what a task is for, with the rights of its owner.

`run` is the loop, `tools` say what may be called, `brief` what the model is told. May import `engine.handlers` and what
is below it.
"""
