"""The built-in handler `assistant`: a language model does what a task is for, with the rights of its owner.

`assistant_handler` is the loop, `brief` tells the model its task and its tools. May import `engine.handlers` and what
is below it.
"""
