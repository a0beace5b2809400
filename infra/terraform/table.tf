# What a deployment consists of. The files are those from which the scripts in infra/ deploy, or which a test holds them
# against: resources.json, firestore.indexes.json, firestore.ttl.json, firestore.rules and monitoring/.

data "google_project" "this" {
  project_id = var.project
}

locals {
  infra     = "${path.module}/.."
  table     = jsondecode(file("${local.infra}/resources.json"))
  indexes   = jsondecode(file("${local.infra}/firestore.indexes.json"))
  ttl       = jsondecode(file("${local.infra}/firestore.ttl.json"))
  has_own   = var.existing_service == null # whether the functions are ours, or mounted in a service that exists
  has_links = local.has_own && var.public_links

  # Cloud Run derives a service's address from its name, the project's number and the region, so that it is known
  # before the service exists.
  urls = { for function in keys(local.table.functions) :
    function => "https://${var.name}-${function}-${data.google_project.this.number}.${var.region}.run.app"
  }
  executor_url   = local.has_own ? local.urls.execute : var.existing_service.url
  sweep_url      = local.has_own ? "${local.urls.sweep}/" : "${var.existing_service.url}/v1/sweep"
  sweep_audience = local.has_own ? local.urls.sweep : var.existing_service.url

  functions = { for function, shape in local.table.functions :
    function => merge(shape, lookup(var.functions, function, {}))
    if local.has_own && (function != "links" || var.public_links)
  }
  # A priority may have further queues: NAME-critical-q2, and NAME-q2 of the priority normal.
  queues = merge([for kind, limits in merge(local.table.queues, var.queues) : {
    for number in range(1, contains(local.table.priorities, kind) ? var.queues_per_priority + 1 : 2) :
    "${kind}${number == 1 ? "" : "-q${number}"}" => {
      name       = "${var.name}${kind == "normal" ? "" : "-${kind}"}${number == 1 ? "" : "-q${number}"}"
      rate       = tonumber(split("/", limits)[0])
      concurrent = tonumber(split("/", limits)[1])
    }
  }]...)
  # An existing service runs as an account of its own, which gets the roles of the api and the executor.
  accounts = local.has_own ? { for kind, title in local.table.accounts : kind => title if kind != "links" || var.public_links } : {
    invoker = local.table.accounts.invoker
  }
  members = merge(
    { for kind, account in google_service_account.this : kind => "serviceAccount:${account.email}" },
    local.has_own ? {} : {
      api      = "serviceAccount:${var.existing_service.service_account}"
      executor = "serviceAccount:${var.existing_service.service_account}"
    },
    { everybody = "allUsers" },
  )

  # One entry for each binding, by a key that stays the same when others come and go.
  bindings = { for binding in flatten([for role in local.table.roles : [for account in role.accounts : {
    on        = role.on
    function  = trimprefix(role.on, "function ")
    role      = role.role
    account   = account
    condition = lookup(role, "condition", null)
    member    = local.members[account]
    } if contains(keys(local.members), account)]]) : "${binding.on} ${binding.role} ${binding.account}" => binding
    # The roles of two accounts that are one existing account are granted once.
    if local.has_own || binding.account != "executor"
  }
}
