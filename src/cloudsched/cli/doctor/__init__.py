"""``cloudsched doctor``: what is right and wrong with a deployment, or with the local stack.

The checks yield findings, and change nothing. Google Cloud is asked through gcloud, the API through its client. It may
import `cloudsched.client` and what other commands share.
"""
