# The functions: one image by digest, which FUNCTION_TARGET makes one or the other. The executor comes before those that
# send to it, also when the image or the secret changes.

locals {
  secret_of = { for generation, version in google_secret_manager_secret_version.dispatch : generation => version.version }
  others    = [for generation in var.secret_generations : tostring(generation) if generation != var.signing_generation]

  common_settings = merge({
    GOOGLE_CLOUD_PROJECT    = var.project
    CLOUDSCHED_LOCATION     = var.region
    CLOUDSCHED_QUEUE        = var.name
    CLOUDSCHED_DATABASE     = var.database
    CLOUDSCHED_EXECUTOR_URL = local.executor_url
    CLOUDSCHED_INVOKER      = google_service_account.this["invoker"].email
    },
    var.bucket == null ? {} : { CLOUDSCHED_BUCKET = var.bucket },
    var.queues_per_priority == 1 ? {} : { CLOUDSCHED_QUEUES_PER_PRIORITY = tostring(var.queues_per_priority) },
    var.shards == 1 ? {} : { CLOUDSCHED_SHARDS = tostring(var.shards) },
    var.api_access == "public" ? { CLOUDSCHED_PUBLIC_URL = local.urls.api } :
    local.has_links ? { CLOUDSCHED_PUBLIC_URL = local.urls.links } : {},
    var.settings,
  )
  trust = { CLOUDSCHED_TRUST_CLOUD_RUN = "on" }
  # The sweep is always private; the api trusts Cloud Run only while nobody else can reach it.
  own_settings = {
    execute = {}
    links   = {}
    sweep = merge(local.trust, {
      CLOUDSCHED_SWEEPER   = google_service_account.this["invoker"].email
      CLOUDSCHED_AUDIENCES = local.urls.sweep
    })
    api = merge(var.api_access == "private" ? local.trust : {}, {
      CLOUDSCHED_SERVICE_ACCOUNTS = join(" ", [for email, role in var.service_accounts : "${email}=${role}"])
      CLOUDSCHED_AUDIENCES        = local.urls.api
    })
  }
  settings = { for function, shape in local.functions : function => merge(local.common_settings, local.own_settings[function], {
    FUNCTION_TARGET               = function
    THREADS                       = tostring(shape.concurrency)
    CLOUDSCHED_TIME_LIMIT_SECONDS = tostring(shape.timeout)
  }) }

  dispatch_mounts = {
    CLOUDSCHED_SECRET = { secret = google_secret_manager_secret.dispatch.secret_id, version = local.secret_of[tostring(var.signing_generation)] }
  }
  previous_mounts = { for generation in local.others :
    "CLOUDSCHED_PREVIOUS_SECRET" => { secret = google_secret_manager_secret.dispatch.secret_id, version = local.secret_of[generation] }
  }
  mounts = { for function in keys(local.functions) : function => merge(
    function == "links" ? {} : local.dispatch_mounts,
    function == "execute" ? local.previous_mounts : {},
    { for variable, mounted in var.secrets : variable => mounted
      if(function == "links" ? variable == "CLOUDSCHED_MAIL_EVENTS_SECRET" : function == "api" || variable != "CLOUDSCHED_API_KEYS")
      && (function == "sweep" || variable != "CLOUDSCHED_SWEEP_PING")
    },
  ) }
  services = merge(module.executor, module.senders)
}

module "executor" {
  source            = "./function"
  for_each          = { for function, shape in local.functions : function => shape if function == "execute" }
  project           = var.project
  region            = var.region
  name              = "${var.name}-${each.key}"
  deployment        = var.name
  image             = var.image
  memory            = coalesce(var.memory, local.table.memory)
  account           = google_service_account.this[each.value.account].email
  shape             = each.value
  settings          = local.settings[each.key]
  mounts            = local.mounts[each.key]
  delete_protection = var.delete_protection

  # An instance reads its secrets when it starts, and dispatches may come at once.
  depends_on = [
    terraform_data.checks,
    google_secret_manager_secret_iam_member.dispatch, google_secret_manager_secret_iam_member.yours,
    google_firestore_index.this, google_firestore_field.this, google_project_iam_member.this,
  ]
}

module "senders" {
  source            = "./function"
  for_each          = { for function, shape in local.functions : function => shape if function != "execute" }
  project           = var.project
  region            = var.region
  name              = "${var.name}-${each.key}"
  deployment        = var.name
  image             = var.image
  memory            = coalesce(var.memory, local.table.memory)
  account           = google_service_account.this[each.value.account].email
  shape             = each.value
  settings          = local.settings[each.key]
  mounts            = local.mounts[each.key]
  delete_protection = var.delete_protection
  is_unchecked      = var.open_without_roles && (each.key == "links" || each.key == "api" && var.api_access == "public" && !var.close_api)

  depends_on = [module.executor, google_cloud_tasks_queue_iam_member.this, google_service_account_iam_member.invoker]
}

# What has to hold between variables.
resource "terraform_data" "checks" {
  lifecycle {
    precondition {
      condition     = (var.image != null) == local.has_own
      error_message = "Name the functions' image, by digest; with an existing service, none."
    }
    precondition {
      condition     = contains(var.secret_generations, var.signing_generation)
      error_message = "The generation that signs must be one of secret_generations."
    }
    precondition {
      condition     = var.shards >= var.placed_shards
      error_message = "shards is ${var.shards}, but the tasks are in ${var.placed_shards} shards already. Their number cannot be lowered."
    }
    precondition {
      condition     = !local.has_own || var.api_access == "private" || length(var.service_accounts) > 0 || contains(keys(var.settings), "CLOUDSCHED_FIREBASE_PROJECT") || contains(keys(var.secrets), "CLOUDSCHED_API_KEYS")
      error_message = "The API is public, but no caller would be accepted."
    }
    precondition {
      condition     = !local.has_own || sum([for queue in values(local.queues) : queue.concurrent]) <= try(local.functions.execute.concurrency * local.functions.execute.maximum, 0)
      error_message = "The queues send more dispatches at once than the executor takes: Cloud Run would answer 429."
    }
  }
}

# The job has no retries: the next sweep follows within a minute anyway.
resource "google_cloud_scheduler_job" "sweep" {
  project          = var.project
  region           = var.region
  name             = "${var.name}-sweep"
  description      = "Created by cloudsched for the deployment ${var.name}"
  schedule         = local.table.sweepSchedule
  time_zone        = "Etc/UTC"
  attempt_deadline = "${local.has_own ? local.functions.sweep.timeout : local.table.functions.sweep.timeout}s"

  http_target {
    uri         = local.sweep_url
    http_method = "POST"
    oidc_token {
      service_account_email = google_service_account.this["invoker"].email
      audience              = local.sweep_audience
    }
  }

  retry_config {
    retry_count = 0
  }

  depends_on = [module.senders, google_cloud_run_v2_service_iam_member.functions]
}
