# One function: a Cloud Run service whose image, settings and secrets are given.

terraform {
  required_providers {
    google = { source = "hashicorp/google" }
  }
}

variable "project" { type = string }
variable "region" { type = string }
variable "name" { type = string }
variable "deployment" { type = string }
variable "image" { type = string }
variable "memory" { type = string }
variable "account" { type = string }
variable "settings" { type = map(string) }
variable "mounts" { type = map(object({ secret = string, version = string })) }
variable "delete_protection" { type = bool }
variable "is_unchecked" {
  type    = bool
  default = false
}
variable "shape" {
  type = object({ concurrency = number, minimum = number, maximum = number, timeout = number, ingress = string })
}

resource "google_cloud_run_v2_service" "this" {
  project              = var.project
  location             = var.region
  name                 = var.name
  ingress              = var.shape.ingress == "all" ? "INGRESS_TRAFFIC_ALL" : "INGRESS_TRAFFIC_INTERNAL_ONLY"
  deletion_protection  = var.delete_protection
  invoker_iam_disabled = var.is_unchecked
  labels               = { managed-by = "terraform", deployment = var.deployment }

  template {
    service_account                  = var.account
    timeout                          = "${var.shape.timeout}s"
    max_instance_request_concurrency = var.shape.concurrency
    scaling {
      min_instance_count = var.shape.minimum
      max_instance_count = var.shape.maximum
    }
    containers {
      image = var.image
      resources {
        limits   = { cpu = "1", memory = var.memory }
        cpu_idle = true
      }
      dynamic "env" {
        for_each = var.settings
        content {
          name  = env.key
          value = env.value
        }
      }
      dynamic "env" {
        for_each = var.mounts
        content {
          name = env.key
          value_source {
            secret_key_ref {
              secret  = env.value.secret
              version = env.value.version
            }
          }
        }
      }
    }
  }
}

output "name" {
  value = google_cloud_run_v2_service.this.name
}
