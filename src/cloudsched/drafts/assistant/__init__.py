"""The built-in handler `assistant`: a language model does what a task is for, with the rights of its owner."""
