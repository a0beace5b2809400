# Monitoring: log-based metrics, alert policies and a dashboard, from the files in infra/monitoring/. Policies and
# dashboards go through the API, because gcloud's commands for policies are alpha.
# shellcheck shell=bash disable=SC2153 # the configuration sets NOTIFICATION_CHANNELS and ALERT_DOLLARS_A_DAY

MONITORING_API="https://monitoring.googleapis.com"

create_monitoring() {
  create_budget
  [[ "$MONITORING" == on ]] || return 0
  log_step "Monitoring"
  create_metrics
  apply_monitored policy
  apply_monitored dashboard
}

# Alerts that tell nobody are the same as none.
warn_of_silence() {
  [[ "$MONITORING" == on && -n "$NOTIFICATION_CHANNELS" ]] ||
    log "Warning: nobody is told of an outage. Set NOTIFICATION_CHANNELS in $CONFIG; docs/run/dashboard.md says how."
}

# Find the budget of this deployment. Sets BILLING_ACCOUNT, and BUDGET to its name and its amount; nothing if there is none.
# Fails if the project has no billing account, or the APIs are off that would name it.
find_budget() {
  BUDGET_TITLE="$NAME in $PROJECT" # a budget has no labels, and no name that we could choose
  BUDGET=""
  BILLING_ACCOUNT="$(query gcloud billing projects describe "$PROJECT" --format="value(billingAccountName.basename())" \
    --billing-project="$PROJECT" --quiet)" || BILLING_ACCOUNT=""
  [[ "$MODE" != dry-run ]] || BILLING_ACCOUNT="BILLING_ACCOUNT"
  [[ -n "$BILLING_ACCOUNT" ]] || return 1
  BUDGET="$(query gcloud billing budgets list --billing-account="$BILLING_ACCOUNT" --filter="displayName=\"$BUDGET_TITLE\"" \
    --format="value(name,amount.specifiedAmount.units)" --billing-project="$PROJECT" --quiet)" || BUDGET=""
}

# The budget counts the whole project: queues have no labels by which Google could tell this deployment's costs apart.
create_budget() {
  [[ -n "$BUDGET_A_MONTH" ]] || return 0
  log_step "Budget"
  find_budget || [[ "$MODE" == check ]] ||
    die "Project $PROJECT has no billing account that you may see. It also needs the APIs that infra/deploy.sh \
--step=services enables."
  if [[ -z "$BUDGET" ]]; then
    mark_managed budget
    change "create the budget of $BUDGET_A_MONTH a month" gcloud billing budgets create \
      --billing-account="$BILLING_ACCOUNT" --display-name="$BUDGET_TITLE" --budget-amount="$BUDGET_A_MONTH" \
      --calendar-period=month --filter-projects="projects/$PROJECT" --threshold-rule=percent=0.5 \
      --threshold-rule=percent=0.9 --threshold-rule=percent=1.0 --billing-project="$PROJECT" --quiet
  elif ! is_managed budget; then
    die "The billing account has a budget \"$BUDGET_TITLE\" that these scripts did not create. Rename it, or set \
BUDGET_A_MONTH to nothing."
  elif [[ "${BUDGET#*$'\t'}" != "$BUDGET_A_MONTH" ]]; then
    change "update the budget to $BUDGET_A_MONTH a month" gcloud billing budgets update "${BUDGET%%$'\t'*}" \
      --budget-amount="$BUDGET_A_MONTH" --billing-project="$PROJECT" --quiet
  fi
}

remove_budget() {
  is_managed budget || [[ "$MODE" == dry-run && -n "$BUDGET_A_MONTH" ]] || return 0
  find_budget || log "The budget $BUDGET_TITLE is not removed: the project's billing account cannot be seen."
  [[ -n "$BUDGET" || "$MODE" == dry-run ]] || return 0
  local found="${BUDGET%%$'\t'*}"
  change "remove the budget $BUDGET_TITLE" gcloud billing budgets delete "${found:-BUDGET}" --billing-project="$PROJECT" \
    --quiet
}

# Print the API's collection of policies or dashboards: get_collection KIND
get_collection() {
  case "$1" in
    policy) printf '%s/v3/projects/%s/alertPolicies' "$MONITORING_API" "$PROJECT" ;;
    dashboard) printf '%s/v1/projects/%s/dashboards' "$MONITORING_API" "$PROJECT" ;;
  esac
}

create_metrics() {
  local key digest file found flags
  while IFS=$'\t' read -r key digest file; do
    flags=(--config-from-file="$file")
    if ! found="$(query gcloud logging metrics describe "$NAME-$key" --format="value(description)")"; then
      mark_managed monitoring
      change "create metric $NAME-$key" gcloud logging metrics create "$NAME-$key" "${flags[@]}"
    elif [[ "$found" != *"[$digest]" ]]; then
      [[ "$found" =~ \[[0-9a-f]{12}\]$ ]] || die "Metric $NAME-$key exists, but these scripts did not make it, and have not \
changed it. Choose another NAME."
      change "update metric $NAME-$key" gcloud logging metrics update "$NAME-$key" "${flags[@]}"
    fi
  done < <(python3 "$INFRA/lib/monitoring.py" render metric "$NAME" "$ALERT_DOLLARS_A_DAY" "$MOUNTED_SERVICES")
}

# List this deployment's policies or dashboards, one line each, in MONITORED: list_monitored KIND
list_monitored() {
  local collection token=""
  MONITORED=""
  collection="$(get_collection "$1")"
  while true; do
    request GET "$collection?pageSize=1000${token:+&pageToken=$token}"
    [[ "$MODE" != dry-run ]] || return 0
    # A project in which the API is off has none.
    [[ "$RESPONSE_STATUS" != 404 && ! ("$RESPONSE_STATUS" == 403 && "$RESPONSE_BODY" == *SERVICE_DISABLED*) ]] || return 0
    [[ "$RESPONSE_STATUS" == 200 ]] || die "Cloud Monitoring answered $RESPONSE_STATUS: $RESPONSE_BODY"
    MONITORED+="$(python3 "$INFRA/lib/monitoring.py" find "$1" "$NAME" <<<"$RESPONSE_BODY")"$'\n'
    token="$(get_json_field nextPageToken <<<"$RESPONSE_BODY")"
    [[ -n "$token" ]] || return 0
  done
}

# change_monitored WHAT METHOD URL [JSON]: a policy on a metric that was created a moment ago is refused until the metric
# is known everywhere, which takes up to ten minutes.
change_monitored() {
  local what="$1" attempt
  shift
  CHANGES=$((CHANGES + 1))
  if [[ "$MODE" == check ]]; then
    printf 'differs: %s\n' "$what"
    return
  fi
  take_lock
  log "$what"
  for attempt in {1..60}; do
    request "$@"
    [[ "$RESPONSE_STATUS" == 404 && "$RESPONSE_BODY" == *"annot find metric"* ]] || break
    ((attempt == 60)) || sleep 10
  done
  [[ "$1" == DELETE && "$RESPONSE_STATUS" == 404 ]] || require_success "Cloud Monitoring did not $what"
}

# apply_monitored KIND: create or update each policy or dashboard, and remove those whose file is gone.
apply_monitored() {
  local kind="$1" key digest json resource etag channels=()
  clear_map digests
  clear_map resources
  clear_map etags
  read -ra channels <<<"$NOTIFICATION_CHANNELS"
  list_monitored "$kind"
  while IFS=$'\t' read -r key digest resource etag; do
    [[ -n "$key" ]] || continue
    put digests "$key" "$digest"
    put resources "$key" "$resource"
    put etags "$key" "$etag"
  done <<<"$MONITORED"
  while IFS=$'\t' read -r key digest json; do
    resource="$(get resources "$key")" etag="$(get etags "$key")"
    if [[ -z "$resource" ]]; then
      mark_managed monitoring
      change_monitored "create $kind $key" POST "$(get_collection "$kind")" "$json"
    elif [[ "$(get digests "$key")" != "$digest" ]]; then
      [[ -z "$etag" ]] || json="${json%?}, \"etag\": \"$etag\"}"
      change_monitored "update $kind $key" PATCH "$(get_collection "$kind")/${resource##*/}" "$json"
    fi
    put resources "$key" ""
  done < <(python3 "$INFRA/lib/monitoring.py" render "$kind" "$NAME" "$ALERT_DOLLARS_A_DAY" \
    "$MOUNTED_SERVICES" "${channels[@]}")
  while IFS=$'\t' read -r key _ resource _; do
    [[ -z "$key" || -z "$(get resources "$key")" ]] ||
      change_monitored "remove $kind $key" DELETE "$(get_collection "$kind")/${resource##*/}"
  done <<<"$MONITORED"
}

# Policies go first: one whose metric is gone cannot be evaluated.
remove_monitoring() {
  local kind key resource
  remove_budget
  is_managed monitoring || [[ "$MODE" == dry-run ]] || return 0
  for kind in policy dashboard; do
    list_monitored "$kind"
    while IFS=$'\t' read -r key _ resource _; do
      [[ -z "$key" ]] || change_monitored "remove $kind $key" DELETE "$(get_collection "$kind")/${resource##*/}"
    done <<<"$MONITORED"
  done
  while IFS=$'\t' read -r key _; do
    query gcloud logging metrics describe "$NAME-$key" --format="value(description)" >/dev/null ||
      [[ "$MODE" == dry-run ]] || continue
    change "remove metric $NAME-$key" gcloud logging metrics delete "$NAME-$key"
  done < <(python3 "$INFRA/lib/monitoring.py" render metric "$NAME" "$ALERT_DOLLARS_A_DAY" "$MOUNTED_SERVICES")
}
