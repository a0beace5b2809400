# One private deployment: the accounts in service_accounts may call the API.

terraform {
  required_version = ">= 1.11"
}

variable "project" { type = string }
variable "image" { type = string }

provider "google" {
  project = var.project
}

module "cloudsched" {
  source           = "../.."
  project          = var.project
  image            = var.image
  service_accounts = { "billing@${var.project}.iam.gserviceaccount.com" = "user" }
}

output "api" {
  value = module.cloudsched.api_url
}
