# The organisation's policies that would refuse a part of a deployment. They are looked up before anything is made.
# shellcheck shell=bash disable=SC2153 # the configuration sets API_INGRESS, REGION and others

require_policies() {
  [[ "$MODE" != check ]] || return 0
  log_step "Organisation policies"
  local refused places=("$REGION")
  refused="$(list_refused run.allowedIngress ingress internal "$API_INGRESS")"
  [[ -z "$refused" ]] || die "The policy run.allowedIngress of your organisation forbids ingress $(join_lines "$refused"). \
execute and sweep need internal, and API_INGRESS is that of the API. Ask for an exception, or choose another API_INGRESS."
  # shellcheck disable=SC2206 # words of lowercase letters
  [[ -n "$ETAG" ]] || places+=(${SECRET_LOCATIONS:-global}) # a secret that is there may stay where it is
  [[ -z "$FIRESTORE_LOCATION" ]] || places+=("$FIRESTORE_LOCATION")
  refused="$(list_refused gcp.resourceLocations locations "${places[@]}")"
  [[ -z "$refused" ]] || die "The policy gcp.resourceLocations of your organisation forbids $(join_lines "$refused"). Choose \
another REGION or FIRESTORE_LOCATION. For 'global', name the regions of the signing secret in SECRET_LOCATIONS."
  [[ "$API_ACCESS" == public || "$PUBLIC_LINKS" == yes ]] || return 0
  refused="$(list_refused iam.allowedPolicyMemberDomains sharing allUsers)"
  [[ -z "$refused" ]] || log "The policy iam.allowedPolicyMemberDomains of your organisation forbids roles for allUsers. So \
Cloud Run will be told to check no role of the public functions, unless run.managed.requireInvokerIam forbids that, too."
}

# list_refused CONSTRAINT KIND VALUE…: print the values that a policy of the organisation refuses. Whoever may not read it
# learns that later, from Google.
list_refused() {
  local found constraint="$1"
  local asking=(gcloud resource-manager org-policies describe "$constraint" --effective --project="$PROJECT" --format=json
    --quiet)
  shift
  if [[ "$MODE" == dry-run ]]; then
    quote_command "${asking[@]}" >&3
  elif found="$("${asking[@]}" 2>/dev/null)"; then
    python3 "$INFRA/lib/policies.py" "$@" <<<"$found"
  else
    log "Whether there is a policy $constraint cannot be read (roles/orgpolicy.policyViewer). If it forbids something, Google \
says so later."
  fi
}

join_lines() { paste -sd, - <<<"$1"; }
