# Two projects from one file: staging tries an image, and production gets the same digest afterwards. Production keeps an
# instance warm, takes more at once, and its alerts page somebody.

terraform {
  required_version = ">= 1.11"
}

variable "staging" { type = string }
variable "production" { type = string }
variable "staging_image" { type = string }
variable "production_image" { type = string }
variable "pager" {
  description = "projects/P/notificationChannels/1"
  type        = string
}

provider "google" {}

module "staging" {
  source            = "../.."
  project           = var.staging
  image             = var.staging_image
  delete_protection = false
  backup_retention  = null
  service_accounts  = { "ci@${var.staging}.iam.gserviceaccount.com" = "admin" }
}

module "production" {
  source                = "../.."
  project               = var.production
  image                 = var.production_image
  firestore_location    = "nam5"
  notification_channels = [var.pager]
  api_access            = "public"
  public_links          = true
  service_accounts      = { "ci@${var.production}.iam.gserviceaccount.com" = "admin" }
  settings = {
    CLOUDSCHED_FIREBASE_PROJECT       = var.production
    CLOUDSCHED_CORS_ORIGINS           = "https://app.example"
    CLOUDSCHED_MAX_ACTIVE_TASKS       = "100"
    CLOUDSCHED_MAX_CREATIONS_A_MINUTE = "10"
  }
  functions = {
    execute = { minimum = 1, maximum = 200 }
    api     = { minimum = 1 }
  }
  queues = { normal = "500/500" }
}

output "apis" {
  value = { staging = module.staging.api_url, production = module.production.api_url }
}
