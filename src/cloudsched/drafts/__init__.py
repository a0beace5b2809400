"""From a person's words to a task that they can confirm. Nothing here stores anything."""
