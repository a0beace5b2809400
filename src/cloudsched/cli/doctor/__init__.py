"""``cloudsched doctor`` checks a deployment, or the local stack."""
