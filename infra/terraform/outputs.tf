output "api_url" {
  description = "Where the API is; null with an existing service."
  value       = local.has_own ? local.urls.api : null
}

output "settings" {
  description = "The environment variables that an existing service needs, apart from the secret."
  value = merge(local.common_settings, local.has_own ? {} : {
    CLOUDSCHED_SWEEPER   = google_service_account.this["invoker"].email
    CLOUDSCHED_AUDIENCES = local.executor_url
  })
}

output "secret" {
  description = "What to mount as CLOUDSCHED_SECRET: the secret's name and the version that signs."
  value       = local.dispatch_mounts.CLOUDSCHED_SECRET
}

output "accounts" {
  description = "The service accounts' email addresses; grant the executor what your handlers need."
  value       = { for kind, account in google_service_account.this : kind => account.email }
}
