"""Follow-ups: tasks that a handler's success creates, in the commit that records it or not at all."""
