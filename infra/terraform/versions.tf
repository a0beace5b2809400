terraform {
  required_version = ">= 1.11" # write-only arguments keep the dispatch secret out of the state
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 6.23, < 8.0"
    }
    random = {
      source  = "hashicorp/random"
      version = ">= 3.7"
    }
  }
}
