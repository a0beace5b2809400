# The secret that signs dispatches. Its value is made during an apply and appears in no state and no plan.

ephemeral "random_password" "dispatch" {
  length  = 64
  special = false
}

resource "google_secret_manager_secret" "dispatch" {
  project   = var.project
  secret_id = "${var.name}-dispatch"
  labels    = { managed-by = "terraform", deployment = var.name }
  replication {
    auto {}
  }
  depends_on = [google_project_service.this]
}

resource "google_secret_manager_secret_version" "dispatch" {
  for_each               = toset([for generation in var.secret_generations : tostring(generation)])
  secret                 = google_secret_manager_secret.dispatch.id
  secret_data_wo         = ephemeral.random_password.dispatch.result
  secret_data_wo_version = tonumber(each.key)
  deletion_policy        = "DISABLE"
}
