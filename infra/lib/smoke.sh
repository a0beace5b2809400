# The smoke test, and the access that it has only while it runs.
#
# The smoke test calls the API as an admin. Between smoke tests nobody can: its account is disabled, may not call the API
# through Cloud Run, and nobody may impersonate it. Each script that runs the smoke test grants this access first and
# revokes it when it ends, also if it fails or is interrupted. If it is killed, the next run of deploy.sh revokes it, and
# --check reports it. An ID token issued during a smoke test stays valid for up to an hour; it is never stored or printed.
#
# A SMOKE_ACCOUNT that the configuration names is left unchanged: the operator decides on its access.
# shellcheck shell=bash disable=SC2034,SC2153 # variables set here are used elsewhere, and the other way round

SMOKE_ACCESS=""  # "granted" from the first grant on until everything is revoked
OPERATOR=""      # the user or service account that runs this script, as a member of a policy
IMPERSONATORS=() # the members that may impersonate the account

# Give the smoke test its access, unless this script has done so already.
grant_smoke_access() {
  API_TOKEN_COMMAND=(
    gcloud auth print-identity-token --impersonate-service-account="$SMOKE_ACCOUNT" --audiences="$(require SERVICE_URLS api)"
    --include-email
  )
  [[ "$SMOKE_ACCOUNT" == "$(require ACCOUNT_EMAILS smoke)" && -z "$SMOKE_ACCESS" ]] || return 0
  find_operator
  SMOKE_ACCESS=granted IMPERSONATORS=("$OPERATOR")
  at_exit revoke_smoke_access
  if [[ "$(get_smoke_account_state)" == disabled ]]; then
    change "enable account $NAME-smoke" gcloud iam service-accounts enable "$SMOKE_ACCOUNT"
  fi
  grant_role "account $NAME-smoke" "$OPERATOR" roles/iam.serviceAccountTokenCreator -- \
    gcloud iam service-accounts -- "$SMOKE_ACCOUNT"
  grant_role "function $NAME-api" "serviceAccount:$SMOKE_ACCOUNT" roles/run.invoker -- \
    gcloud run services -- "$NAME-api" --region="$REGION"
}

# Revoke the smoke test's access, if this script has granted it. It also ends each run, so it does not give up when a
# command fails, and does not let itself be interrupted.
revoke_smoke_access() {
  [[ -n "$SMOKE_ACCESS" ]] || return 0
  SMOKE_ACCESS=""
  trap - ERR
  trap '' INT TERM HUP
  local member is_revoked=yes
  revoke "disable account $NAME-smoke" gcloud iam service-accounts disable "$SMOKE_ACCOUNT"
  for member in "${IMPERSONATORS[@]}"; do
    revoke "revoke roles/iam.serviceAccountTokenCreator on account $NAME-smoke from $member" \
      gcloud iam service-accounts remove-iam-policy-binding "$SMOKE_ACCOUNT" --member="$member" \
      --role=roles/iam.serviceAccountTokenCreator --format=none
  done
  revoke "revoke roles/run.invoker on function $NAME-api from $SMOKE_ACCOUNT" \
    gcloud run services remove-iam-policy-binding "$NAME-api" --region="$REGION" \
    --member="serviceAccount:$SMOKE_ACCOUNT" --role=roles/run.invoker --format=none
  trap - INT TERM HUP
  [[ -n "$is_revoked" ]] || {
    log "error: The smoke test still has access to the API. Run infra/deploy.sh to revoke it."
    return 1
  }
}

# revoke WHAT COMMAND: like `change`, but a failure does not end the script. It clears `is_revoked`, unless the binding
# does not exist.
revoke() {
  local what="$1" errors
  shift
  CHANGES=$((CHANGES + 1))
  POLICY_COMMAND="" # what was read before may have changed
  complete "$@"
  if [[ "$MODE" == dry-run ]]; then
    quote_command "${COMMAND[@]}"
    return
  fi
  log "$what"
  if ! errors="$("${COMMAND[@]}" 2>&1 >/dev/null)" && ! is_not_found "$errors"; then
    log "$errors"
    is_revoked=""
  fi
}

# Revoke the access that a killed run has left.
revoke_leftover_smoke_access() {
  [[ "$SMOKE_ACCOUNT" == "$(require ACCOUNT_EMAILS smoke)" ]] || return 0
  local state found role member
  state="$(get_smoke_account_state)"
  [[ -n "$state" ]] || return 0
  found="$(query gcloud iam service-accounts get-iam-policy "$SMOKE_ACCOUNT" --flatten="bindings[].members" \
    --format="value(bindings.role,bindings.members)")" || found=""
  IMPERSONATORS=()
  while IFS=$'\t' read -r role member; do
    [[ "$role" != roles/iam.serviceAccountTokenCreator ]] || IMPERSONATORS+=("$member")
  done <<<"$found"
  if [[ "$state" == disabled && ${#IMPERSONATORS[@]} == 0 ]] &&
    ! has_binding "serviceAccount:$SMOKE_ACCOUNT" roles/run.invoker gcloud run services get-iam-policy "$NAME-api" \
      --region="$REGION"; then
    return
  fi
  if [[ "$MODE" == check ]]; then
    report_difference "account $NAME-smoke has access to the API although no smoke test runs"
    return
  fi
  SMOKE_ACCESS=granted
  revoke_smoke_access
}

# Print whether the smoke test's account is enabled or disabled, or nothing if it does not exist.
get_smoke_account_state() {
  local is_disabled
  is_disabled="$(query gcloud iam service-accounts describe "$SMOKE_ACCOUNT" --format="value(disabled)")" || return 0
  if [[ "$is_disabled" == True ]]; then
    printf 'disabled'
  else
    printf 'enabled'
  fi
}

# Set OPERATOR to the member that policies use for gcloud's active account.
find_operator() {
  OPERATOR="$(query gcloud config get account --quiet)" || OPERATOR=""
  [[ "$MODE" != dry-run ]] || OPERATOR=YOU
  [[ -n "$OPERATOR" ]] || die "No account is active in gcloud. Run gcloud auth login."
  if [[ "$OPERATOR" == *.gserviceaccount.com ]]; then
    OPERATOR="serviceAccount:$OPERATOR"
  else
    OPERATOR="user:$OPERATOR"
  fi
}

# Refuse a smoke test that your handlers would not take, before anything is changed.
require_smoke_handler() {
  local said
  said="$("${PYTHON:-python3}" "$INFRA/lib/smoke.py" "$FUNCTIONS_DIR" "$SMOKE_HANDLER" "$SMOKE_PAYLOAD")" ||
    die "No handler takes SMOKE_HANDLER=$SMOKE_HANDLER with SMOKE_PAYLOAD=$SMOKE_PAYLOAD: $said"
  [[ -z "$said" ]] || log "The smoke test cannot be looked at with this machine's PYTHON: $said"
}

# request_when_allowed METHOD URL [JSON]: repeat a request while Cloud Run answers 403, for as long as a role that was just
# granted may take to reach every server.
request_when_allowed() {
  local waited
  for ((waited = 0; ; waited += 5)); do
    request "$@"
    [[ "$RESPONSE_STATUS" == 403 ]] || break
    ((waited < IAM_PROPAGATION_SECONDS)) || break
    sleep 5
  done
  # Cloud Run answers a caller from outside as if there were no such service (cloud.google.com/run/docs/securing/ingress).
  [[ "$API_INGRESS" == all || "$RESPONSE_STATUS" != 404 || "$RESPONSE_BODY" == *'"status"'* ]] || die "API_INGRESS is \
$API_INGRESS, and this machine is outside of that: ${2%%/v1/*} answers 404. Run this script inside the network, or put the \
load balancer's address first in API_ADDRESSES."
}

# Test whether this machine reaches a function by Cloud Run's own address, and so a revision by its tag.
is_reached_directly() { [[ "$API_INGRESS" == all || -z "$API_ADDRESSES" ]]; }

# Print the address by which this machine reaches the API.
get_api_address() {
  local first="${API_ADDRESSES%% *}"
  if is_reached_directly; then require SERVICE_URLS api; else printf %s "${first%/}"; fi
}

# Test whether the serving API accepts the smoke test's account, which the configuration may have changed.
is_smoke_account_accepted() {
  grant_smoke_access
  request_when_allowed GET "$(get_api_address)/v1/tasks?pageSize=1"
  [[ "$RESPONSE_STATUS" != 401 && "$RESPONSE_STATUS" != 503 ]]
}

# test_links [TAG]: test whether the function for links answers everybody, if there is one: an address of a feed that
# nobody has is 404, and says so as the code does, not as Cloud Run.
test_links() {
  [[ "$PUBLIC_LINKS" == yes && "$API_INGRESS" == all ]] || return 0
  local url
  url="$(require SERVICE_URLS "${1:+$1.}links")/v1/feeds/smoke-test.ics"
  request_anonymously GET "$url"
  [[ "$MODE" != dry-run ]] || return 0
  if [[ "$RESPONSE_STATUS" == 403 ]]; then
    log "Nobody may open links yet: Cloud Run answers 403, whatever the revision. infra/deploy.sh lets everybody call it."
    return 0
  fi
  [[ "$RESPONSE_STATUS" == 404 && "$RESPONSE_BODY" == *'"status"'* ]] || {
    log "The function for links answered $RESPONSE_STATUS: $RESPONSE_BODY"
    return 1
  }
}

# Create a task through the API, wait until the queue has brought it to its handler, and delete it.
run_smoke_test() {
  log_step "Smoke test"
  local api id executions="" state="" attempt
  api="$(get_api_address)"
  [[ "$MODE" != check ]] || return 0
  grant_smoke_access
  id="smoke-$(date -u +%Y%m%d%H%M%S)-$RANDOM"
  [[ "$MODE" != dry-run ]] || id="smoke"
  request_when_allowed POST "$api/v1/tasks" "{\"id\": \"$id\", \"owner\": \"$NAME-smoke-test\", \
\"title\": \"Smoke test\", \"handler\": \"$SMOKE_HANDLER\", \"payload\": $SMOKE_PAYLOAD}"
  require_success "The API did not accept the task"
  request POST "$api/v1/tasks/$id/trigger"
  require_success "The API did not trigger the task"
  for attempt in {1..60}; do
    request GET "$api/v1/tasks/$id/executions"
    [[ "$MODE" != dry-run ]] || break
    state="$(get_json_field executions.0.status <<<"$RESPONSE_BODY")"
    [[ "$state" != SUCCEEDED && "$state" != FAILED ]] || break
    ((attempt == 60)) || sleep 2
  done
  executions="$RESPONSE_BODY"
  request DELETE "$api/v1/tasks/$id"
  [[ "$MODE" == dry-run || "$state" == SUCCEEDED ]] || die "The task did not run: its execution is \
'${state:-not started}' after two minutes. ${executions} See docs/start/faq.md."
  [[ "$MODE" == dry-run ]] || log "The task ran: $state."
}
