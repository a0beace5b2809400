variable "project" {
  description = "The project's ID."
  type        = string
}

variable "region" {
  description = "Region of the functions, the queues and the sweep's job."
  type        = string
  default     = "us-central1"
}

variable "name" {
  description = "Prefix of all resource names."
  type        = string
  default     = "cloudsched"
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,18}[a-z0-9]$", var.name))
    error_message = "The name must be 2 to 20 lowercase letters, digits and hyphens."
  }
}

variable "image" {
  description = "The functions' container image, by digest; README.md says how to build it. Null with an existing service."
  type        = string
  default     = null
  validation {
    condition     = var.image == null || can(regex("@sha256:[0-9a-f]{64}$", coalesce(var.image, "-")))
    error_message = "Name the image by digest: REGION-docker.pkg.dev/PROJECT/REPOSITORY/IMAGE@sha256:…"
  }
}

variable "existing_service" {
  description = "A service that you have and in which cloudsched is mounted: the mount's address, the service account that it runs as, and, if Cloud Run admits only invokers, its name."
  type        = object({ url = string, service_account = string, name = optional(string) })
  default     = null
}

variable "database" {
  description = "The Firestore database's ID: one of the deployment's own. Indexes and TTL policies hold for all collections of a name, so never one that an app uses."
  type        = string
  default     = "cloudsched"
}

variable "create_database" {
  description = "Whether to create the database. If not, it exists already, and only its indexes, TTL policies, rules and backups are managed."
  type        = bool
  default     = true
}

variable "firestore_location" {
  description = "Where the database is created. It cannot be changed later."
  type        = string
  default     = "us-central1"
}

variable "backup_retention" {
  description = "How long daily backups are kept, in seconds with an s; null for no backups."
  type        = string
  default     = "604800s"
}

variable "release_rules" {
  description = "Whether to release infra/firestore.rules. Set it to false if the database has rules of its own."
  type        = bool
  default     = true
}

variable "api_access" {
  description = "private: Cloud Run admits only the accounts in service_accounts. public: anyone can reach the API, which authenticates each request itself."
  type        = string
  default     = "private"
  validation {
    condition     = contains(["private", "public"], var.api_access)
    error_message = "It must be private or public."
  }
}

variable "open_without_roles" {
  description = "Whether Cloud Run checks no roles for what everybody may call, where an organisation forbids roles for allUsers (iam.allowedPolicyMemberDomains)."
  type        = bool
  default     = false
}

variable "close_api" {
  description = "Whether a public API is kept closed: the step between private and public, in both directions (README.md)."
  type        = bool
  default     = false
}

variable "public_links" {
  description = "Whether to deploy the public function for what people open by a link."
  type        = bool
  default     = false
}

variable "service_accounts" {
  description = "Who may call the API: email addresses with their roles (viewer, admin, user, reader, delegate, worker or worker@QUEUE+QUEUE)."
  type        = map(string)
  default     = {}
}

variable "settings" {
  description = "Additional environment variables of the functions; docs/reference/configuration.md lists them. None of them may be secret."
  type        = map(string)
  default     = {}
  validation {
    condition     = alltrue([for name in keys(var.settings) : !can(regex("SECRET|SMTP_URL|APPRISE_URLS|SWEEP_PING$|API_KEYS|TRUST_CLOUD_RUN|SERVICE_ACCOUNTS|AUDIENCES|SWEEPER|QUEUES_PER_PRIORITY|SHARDS", name))])
    error_message = "Secrets belong in secrets; what the API trusts, shards and queues_per_priority are derived from other variables."
  }
}

variable "secrets" {
  description = "Variables whose values are secrets that you create: CLOUDSCHED_SMTP_URL = { secret = \"mail-server\", version = \"1\" }."
  type        = map(object({ secret = string, version = string }))
  default     = {}
  validation {
    condition     = alltrue([for name in keys(var.secrets) : contains(["CLOUDSCHED_SMTP_URL", "CLOUDSCHED_APPRISE_URLS", "CLOUDSCHED_MAIL_EVENTS_SECRET", "CLOUDSCHED_SWEEP_PING", "CLOUDSCHED_API_KEYS"], name)])
    error_message = "Only CLOUDSCHED_SMTP_URL, CLOUDSCHED_APPRISE_URLS, CLOUDSCHED_MAIL_EVENTS_SECRET, CLOUDSCHED_SWEEP_PING and CLOUDSCHED_API_KEYS."
  }
}

variable "secret_generations" {
  description = "The generations of the dispatch secret that exist: one, or two during a rotation (README.md)."
  type        = list(number)
  default     = [1]
  validation {
    condition     = contains([1, 2], length(var.secret_generations)) && length(distinct(var.secret_generations)) == length(var.secret_generations)
    error_message = "The executor accepts one or two secrets."
  }
}

variable "signing_generation" {
  description = "The generation with which dispatches are signed."
  type        = number
  default     = 1
}

variable "queues" {
  description = "Queue limits that differ from infra/resources.json, by priority or channel: DISPATCHES A SECOND/AT THE SAME TIME."
  type        = map(string)
  default     = {}
  validation {
    condition     = alltrue([for limits in values(var.queues) : can(regex("^[1-9][0-9]{0,2}/[1-9][0-9]{0,3}$", limits))])
    error_message = "Each must be like 200/200; Cloud Tasks accepts at most 500/5000."
  }
}

variable "queues_per_priority" {
  description = "How many queues each priority has, with the limits of queues each; docs/how-to/capacity.md, “More queues”."
  type        = number
  default     = 1
  validation {
    condition     = contains(range(1, local.table.maxQueuesPerPriority + 1), var.queues_per_priority)
    error_message = "It must be a whole number from 1 to ${local.table.maxQueuesPerPriority}."
  }
}

variable "shards" {
  description = "Over how many ranges of Firestore's indexes tasks are spread. It can be raised as README.md says, but never lowered."
  type        = number
  default     = 1
  validation {
    condition     = contains(range(1, local.table.maxShards + 1), var.shards)
    error_message = "It must be a whole number from 1 to ${local.table.maxShards}."
  }
}

variable "placed_shards" {
  description = "In how many shards every task has its place: the last number for which `cloudsched shards grow` has ended. From 2 on, the indexes that shards replace are removed."
  type        = number
  default     = 1
  validation {
    condition     = contains(range(1, local.table.maxShards + 1), var.placed_shards)
    error_message = "It must be a whole number from 1 to ${local.table.maxShards}."
  }
}

variable "keep_retired_indexes" {
  description = "Whether to keep the indexes that only earlier versions need: true for the apply that upgrades from one of them, false for the next."
  type        = bool
  default     = false
}

variable "functions" {
  description = "What differs from infra/resources.json in a function's shape: concurrency (and threads), minimum, maximum, timeout."
  type        = map(map(number))
  default     = {}
}

variable "memory" {
  description = "Memory of an instance; that of infra/resources.json if null."
  type        = string
  default     = null
}

variable "bucket" {
  description = "A bucket that you create, for durable handlers' results that exceed a document."
  type        = string
  default     = null
}

variable "monitoring" {
  description = "Whether to create log-based metrics, alert policies and the dashboard."
  type        = bool
  default     = true
}

variable "notification_channels" {
  description = "Whom alerts tell: projects/P/notificationChannels/1, …"
  type        = list(string)
  default     = []
}

variable "alert_dollars_a_day" {
  description = "An alert comes when what runs in five minutes would cost more than this in a day."
  type        = number
  default     = 20
}

variable "delete_protection" {
  description = "Whether Terraform refuses to delete the database and the functions."
  type        = bool
  default     = true
}
