# One queue for each priority and for each channel of deliveries.

resource "google_cloud_tasks_queue" "this" {
  for_each = local.queues
  project  = var.project
  location = var.region
  name     = each.value.name

  rate_limits {
    max_dispatches_per_second = each.value.rate
    max_concurrent_dispatches = each.value.concurrent
  }

  # After an outage of an hour the executor is at work a minute after its return. Cloud Tasks gives up when both the
  # attempts and the day are exhausted; by then the sweep has long sent replacements.
  retry_config {
    max_attempts       = local.table.queueRetries.maxAttempts
    max_retry_duration = local.table.queueRetries.maxRetryDuration
    min_backoff        = local.table.queueRetries.minBackoff
    max_backoff        = local.table.queueRetries.maxBackoff
    max_doublings      = local.table.queueRetries.maxDoublings
  }

  stackdriver_logging_config {
    sampling_ratio = 0.01
  }

  depends_on = [google_project_service.this]
}
