"""The built-in handler `assistant`: a language model does what a task is for, with the rights of its owner.

`handler` is the loop, `tools` say what it may call, `brief` tells the model. May import `engine.handlers` and what
is below it.
"""
