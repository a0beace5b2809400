# cloudsched is mounted in a Cloud Run service that you have (docs/how-to/mounted-cloud-run.md), beside a database that you have: the
# module makes what is around them. Give the service the settings and the secret that it prints.

terraform {
  required_version = ">= 1.11"
}

variable "project" { type = string }

provider "google" {
  project = var.project
}

module "cloudsched" {
  source          = "../.."
  project         = var.project
  create_database = false
  release_rules   = false
  existing_service = {
    name            = "shop"
    url             = "https://shop-123456789012.us-central1.run.app/scheduler"
    service_account = "shop@${var.project}.iam.gserviceaccount.com"
  }
}

output "settings" {
  value = module.cloudsched.settings
}

output "secret" {
  value = module.cloudsched.secret
}
