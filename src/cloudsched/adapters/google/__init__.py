"""The common parts of Google's services (channels, retries, ID tokens), and the queue on Cloud Tasks."""
