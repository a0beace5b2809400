"""The HTTP side in production: the API (`api`), who calls it (`auth`), and the deployed functions."""
