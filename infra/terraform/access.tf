# Service accounts, and the roles of infra/resources.json: docs/reference/resources.md gives the reason for each.

resource "google_project_service" "this" {
  for_each           = toset(local.table.services)
  project            = var.project
  service            = each.value
  disable_on_destroy = false # something else may use it by then
}

resource "google_service_account" "this" {
  for_each     = local.accounts
  project      = var.project
  account_id   = "${var.name}-${each.key}"
  display_name = each.value
  description  = "Created by cloudsched for the deployment ${var.name}"
  disabled     = each.key == "smoke" # enabled only while a smoke test runs
  depends_on   = [google_project_service.this]
}

resource "google_project_iam_member" "this" {
  for_each = { for key, binding in local.bindings : key => binding if binding.on == "project" }
  project  = var.project
  role     = each.value.role
  member   = each.value.member
  dynamic "condition" {
    for_each = each.value.condition == "database" ? [var.database] : []
    content {
      title      = "${var.name}-database"
      expression = "resource.name==\"projects/${var.project}/databases/${condition.value}\""
    }
  }
}

resource "google_secret_manager_secret_iam_member" "dispatch" {
  for_each  = { for key, binding in local.bindings : key => binding if binding.on == "secret" }
  project   = var.project
  secret_id = google_secret_manager_secret.dispatch.secret_id
  role      = each.value.role
  member    = each.value.member
}

resource "google_service_account_iam_member" "invoker" {
  for_each           = { for key, binding in local.bindings : key => binding if binding.on == "account invoker" }
  service_account_id = google_service_account.this["invoker"].name
  role               = each.value.role
  member             = each.value.member
}

resource "google_cloud_tasks_queue_iam_member" "this" {
  for_each = merge([for key, binding in local.bindings : {
    for kind in keys(local.queues) : "${kind} ${binding.account}" => merge(binding, { kind = kind })
  } if binding.on == "queue"]...)
  project  = var.project
  location = var.region
  name     = google_cloud_tasks_queue.this[each.value.kind].name
  role     = each.value.role
  member   = each.value.member
}

resource "google_storage_bucket_iam_member" "this" {
  for_each = { for key, binding in local.bindings : key => binding if binding.on == "bucket" && var.bucket != null }
  bucket   = var.bucket
  role     = each.value.role
  member   = each.value.member
}

# The secrets that you create: the api and the executor read them, and the function for links its own.
resource "google_secret_manager_secret_iam_member" "yours" {
  for_each = merge([for variable, mounted in var.secrets : {
    for account in ["api", "executor", "links"] : "${variable} ${account}" => { secret = mounted.secret, account = account }
    if contains(keys(local.members), account)
    && (account != "links" || variable == "CLOUDSCHED_MAIL_EVENTS_SECRET")
    && (account != "executor" || variable != "CLOUDSCHED_API_KEYS" && local.has_own)
    && (account == "executor" || variable != "CLOUDSCHED_SWEEP_PING" || !local.has_own)
  }]...)
  project   = var.project
  secret_id = each.value.secret
  role      = "roles/secretmanager.secretAccessor"
  member    = local.members[each.value.account]
}

resource "google_cloud_run_v2_service_iam_member" "functions" {
  for_each = { for key, binding in local.bindings : key => binding
    if contains(keys(local.functions), binding.function) && !(var.open_without_roles && binding.member == "allUsers")
  }
  project  = var.project
  location = var.region
  name     = local.services[each.value.function].name
  role     = each.value.role
  member   = each.value.member
}

resource "google_cloud_run_v2_service_iam_member" "existing" {
  count    = local.has_own || try(var.existing_service.name, null) == null ? 0 : 1
  project  = var.project
  location = var.region
  name     = var.existing_service.name
  role     = "roles/run.invoker"
  member   = local.members.invoker
}

# A revision that trusts tokens without a signature must never be reachable by the public: everybody may call the api
# only once no such revision serves, which takes an apply of its own (close_api).
resource "google_cloud_run_v2_service_iam_member" "callers" {
  for_each = local.has_own ? merge(
    { for email in keys(var.service_accounts) : email => "serviceAccount:${email}" },
    var.api_access == "public" && !var.close_api && !var.open_without_roles ? { everybody = local.members.everybody } : {},
  ) : {}
  project  = var.project
  location = var.region
  name     = local.services["api"].name
  role     = "roles/run.invoker"
  member   = each.value
}
