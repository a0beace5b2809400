# What Cloud Logging must not keep, and what Cloud Monitoring watches: the files in infra/monitoring.

locals {
  monitoring = "${local.infra}/monitoring"
  metrics = { for key, metric in jsondecode(replace(file("${local.monitoring}/metrics.json"), "$${NAME}", var.name)) :
    key => metric if var.monitoring
  }
  alerted_runs = max(1, floor(var.alert_dollars_a_day * 1000000 / local.table.dollarsPerMillionRuns / 288 + 0.5)) # in five minutes
  policies = { for file in var.monitoring ? fileset("${local.monitoring}/alerts", "*.json") : [] :
    trimsuffix(file, ".json") => jsondecode(replace(replace(replace(
      file("${local.monitoring}/alerts/${file}"),
      "\"$${RUNS}\"", tostring(local.alerted_runs)), "$${DOLLARS}", tostring(var.alert_dollars_a_day)), "$${NAME}", var.name
    ))
  }
}

# Whoever knows the address of a calendar feed can read the feed.
resource "google_logging_project_exclusion" "feeds" {
  project     = var.project
  name        = "${var.name}-feeds"
  description = "Addresses of calendar feeds are secret"
  filter = join(" AND ", [
    "resource.type=\"cloud_run_revision\"", "resource.labels.service_name=~\"^${var.name}-\"",
    "httpRequest.requestMethod!=\"DELETE\"", "httpRequest.requestUrl=~\"/v1/feeds/.\"",
  ])
}

resource "google_logging_metric" "this" {
  for_each    = local.metrics
  project     = var.project
  name        = "${var.name}-${each.key}"
  description = each.value.description
  filter      = each.value.filter
  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
    dynamic "labels" {
      for_each = try(each.value.labels, {})
      content {
        key        = labels.key
        value_type = "STRING"
      }
    }
  }
  label_extractors = try(each.value.labels, {})
  depends_on       = [google_project_service.this]
}

# A metric is known everywhere only minutes after its creation. If a policy is refused because of that, apply again.
resource "google_monitoring_alert_policy" "this" {
  for_each              = local.policies
  project               = var.project
  display_name          = each.value.displayName
  combiner              = each.value.combiner
  severity              = each.value.severity
  notification_channels = var.notification_channels
  user_labels           = { cloudsched = var.name, key = each.key }

  documentation {
    mime_type = each.value.documentation.mimeType
    subject   = each.value.documentation.subject
    content   = each.value.documentation.content
  }

  dynamic "conditions" {
    for_each = each.value.conditions
    content {
      display_name = conditions.value.displayName
      dynamic "condition_threshold" {
        for_each = [for one in [lookup(conditions.value, "conditionThreshold", null)] : one if one != null]
        content {
          filter             = condition_threshold.value.filter
          comparison         = condition_threshold.value.comparison
          threshold_value    = condition_threshold.value.thresholdValue
          duration           = condition_threshold.value.duration
          denominator_filter = lookup(condition_threshold.value, "denominatorFilter", null)
          dynamic "aggregations" {
            for_each = condition_threshold.value.aggregations
            content {
              alignment_period     = aggregations.value.alignmentPeriod
              per_series_aligner   = aggregations.value.perSeriesAligner
              cross_series_reducer = aggregations.value.crossSeriesReducer
              group_by_fields      = try(aggregations.value.groupByFields, [])
            }
          }
          dynamic "denominator_aggregations" {
            for_each = lookup(condition_threshold.value, "denominatorAggregations", [])
            content {
              alignment_period     = denominator_aggregations.value.alignmentPeriod
              per_series_aligner   = denominator_aggregations.value.perSeriesAligner
              cross_series_reducer = denominator_aggregations.value.crossSeriesReducer
              group_by_fields      = try(denominator_aggregations.value.groupByFields, [])
            }
          }
          trigger {
            count = condition_threshold.value.trigger.count
          }
        }
      }
      dynamic "condition_absent" {
        for_each = [for one in [lookup(conditions.value, "conditionAbsent", null)] : one if one != null]
        content {
          filter   = condition_absent.value.filter
          duration = condition_absent.value.duration
          dynamic "aggregations" {
            for_each = condition_absent.value.aggregations
            content {
              alignment_period     = aggregations.value.alignmentPeriod
              per_series_aligner   = aggregations.value.perSeriesAligner
              cross_series_reducer = aggregations.value.crossSeriesReducer
              group_by_fields      = try(aggregations.value.groupByFields, [])
            }
          }
          trigger {
            count = condition_absent.value.trigger.count
          }
        }
      }
    }
  }

  depends_on = [google_logging_metric.this]
}

resource "google_monitoring_dashboard" "this" {
  count          = var.monitoring ? 1 : 0
  project        = var.project
  dashboard_json = replace(file("${local.monitoring}/dashboard.json"), "$${NAME}", var.name)
  depends_on     = [google_logging_metric.this]
}
