"""``cloudsched doctor``: what is right and wrong with a deployment, or with the local stack."""
