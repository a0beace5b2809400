# The database with point-in-time recovery and daily backups; its indexes, TTL policies and rules.

locals {
  # A field has one resource: its own indexes and its TTL policy are parts of it.
  overrides = { for key, field in local.known_overrides : key => merge(field, {
    indexes = [for index in field.indexes : index if !contains(local.replaced, key)]
  }) }
  expiring = { for field in local.ttl : "${field.collectionGroup} ${field.fieldPath}" => field }
  fields   = merge(local.expiring, local.overrides)

  # With one shard the database has the file's indexes; with more, those that begin with a shard, too; and once every task
  # has its place, it loses those that they replace: ranges of rising values that begin with neither owner, parent nor shard.
  composites = { for key, index in local.known_composites : key => index if !contains(local.replaced, key) }
  replaced = [for key, index in local.ranges : key if var.placed_shards > 1
    && contains(["tasks", "offers"], index.group)
    && contains(local.table.risingFields, index.paths[length(index.paths) - 1])
    && !anytrue([for path in index.paths : contains(["owner", "parent.taskId"], path) || can(regex("(^|\\.)shard$", path))])
  ]
  ranges = merge(
    { for key, field in local.known_overrides : key => { group = field.collectionGroup, paths = [field.fieldPath] } },
    { for key, index in local.known_composites : key => { group = index.collectionGroup, paths = index.fields[*].fieldPath } },
  )
  # What only earlier versions need, as long as one of them may still serve.
  retired         = { for kind, list in local.indexes.retired : kind => [for each in list : each if var.keep_retired_indexes] }
  known_overrides = { for field in concat(local.indexes.fieldOverrides, local.retired.fieldOverrides) : "${field.collectionGroup} ${field.fieldPath}" => field }
  known_composites = { for index in concat(local.indexes.indexes, [for index in local.indexes.sharded.indexes : index if var.shards > 1], local.retired.indexes) :
    "${index.collectionGroup} ${join(", ", [for field in index.fields : "${field.fieldPath} ${lookup(field, "order", lookup(field, "arrayConfig", ""))}"])}" => index
  }
}

resource "google_firestore_database" "this" {
  count                             = var.create_database ? 1 : 0
  project                           = var.project
  name                              = var.database
  location_id                       = var.firestore_location
  type                              = "FIRESTORE_NATIVE"
  point_in_time_recovery_enablement = "POINT_IN_TIME_RECOVERY_ENABLED"
  delete_protection_state           = var.delete_protection ? "DELETE_PROTECTION_ENABLED" : "DELETE_PROTECTION_DISABLED"
  deletion_policy                   = "DELETE"
  depends_on                        = [google_project_service.this]

  # Another name in var.database, as after a restore, must not remove the old one: README.md says how to move.
  lifecycle {
    prevent_destroy = true
  }
}

resource "google_firestore_backup_schedule" "daily" {
  count     = var.backup_retention == null ? 0 : 1
  project   = var.project
  database  = var.database
  retention = var.backup_retention
  daily_recurrence {}
  depends_on = [google_firestore_database.this]
}

# The service makes one index at a time and refuses others meanwhile; the provider waits and tries again. If it gives up,
# apply again, with -parallelism=1.
resource "google_firestore_index" "this" {
  for_each    = local.composites
  project     = var.project
  database    = var.database
  collection  = each.value.collectionGroup
  query_scope = each.value.queryScope

  dynamic "fields" {
    for_each = each.value.fields
    content {
      field_path   = fields.value.fieldPath
      order        = lookup(fields.value, "order", null)
      array_config = lookup(fields.value, "arrayConfig", null)
    }
  }

  depends_on = [google_firestore_database.this]
}

resource "google_firestore_field" "this" {
  for_each   = local.fields
  project    = var.project
  database   = var.database
  collection = each.value.collectionGroup
  field      = each.value.fieldPath

  dynamic "index_config" {
    for_each = contains(keys(local.overrides), each.key) ? [local.overrides[each.key].indexes] : []
    content {
      dynamic "indexes" {
        for_each = index_config.value
        content {
          order       = indexes.value.order
          query_scope = indexes.value.queryScope
        }
      }
    }
  }

  dynamic "ttl_config" {
    for_each = contains(keys(local.expiring), each.key) ? [true] : []
    content {}
  }

  depends_on = [google_firestore_database.this]
}

resource "google_firebaserules_ruleset" "this" {
  count   = var.release_rules ? 1 : 0
  project = var.project
  source {
    files {
      name    = "firestore.rules"
      content = file("${local.infra}/firestore.rules")
    }
  }
  depends_on = [google_firestore_database.this]
}

resource "google_firebaserules_release" "this" {
  count        = var.release_rules ? 1 : 0
  project      = var.project
  name         = var.database == "(default)" ? "cloud.firestore" : "cloud.firestore/${var.database}"
  ruleset_name = google_firebaserules_ruleset.this[0].name
}
