"""Cloud Tasks' RPCs over the model: the services, and the codecs between messages and the model."""
