# Access to the API: its settings, and who may call it through Cloud Run.
#
# Cloud Run strips the signature from a token that it has verified. A private API must therefore accept unsigned tokens
# (CLOUDSCHED_TRUST_CLOUD_RUN); a public one must not, because anyone could forge them. A revision that accepts unsigned
# tokens must never be reachable by the public. Two ledger entries make sure of that:
#
#   open.api   "yes" while the API is public; after it was made private, the time of that (seconds since the epoch)
#   trust.api  "yes" while a serving revision may accept unsigned tokens; "previous" while only a rollback could bring
#              such a revision back
# shellcheck shell=bash disable=SC2034,SC2153 # variables set here are used elsewhere, and the other way round

# Google documents that a change of roles takes effect within two minutes typically, and seven or more at worst.
IAM_PROPAGATION_SECONDS=600

# Set ACCESS_SETTINGS to the variables by which a function authenticates its callers and limits each user. The quotas
# hold for calls, too, which the executor creates, and the sweep in its place.
set_access_settings() {
  local IFS=' '
  ACCESS_SETTINGS=(
    ${MAX_ACTIVE_TASKS:+"CLOUDSCHED_MAX_ACTIVE_TASKS=$MAX_ACTIVE_TASKS"}
    ${MAX_CREATIONS_A_MINUTE:+"CLOUDSCHED_MAX_CREATIONS_A_MINUTE=$MAX_CREATIONS_A_MINUTE"}
    ${MAX_RUN_CREATIONS_A_MINUTE:+"CLOUDSCHED_MAX_RUN_CREATIONS_A_MINUTE=$MAX_RUN_CREATIONS_A_MINUTE"}
  )
  case "$1" in
    api)
      ACCESS_SETTINGS+=(
        "CLOUDSCHED_SERVICE_ACCOUNTS=${API_ACCOUNTS[*]}"
        "CLOUDSCHED_AUDIENCES=$(require SERVICE_URLS api)${API_ADDRESSES:+ $API_ADDRESSES}"
        ${FIREBASE_PROJECT:+"CLOUDSCHED_FIREBASE_PROJECT=$FIREBASE_PROJECT"}
        ${CORS_ORIGINS:+"CLOUDSCHED_CORS_ORIGINS=$CORS_ORIGINS"}
      )
      [[ "$API_ACCESS" == public ]] || ACCESS_SETTINGS+=("CLOUDSCHED_TRUST_CLOUD_RUN=on")
      [[ "$QUEUE_ADMIN" == off ]] || ACCESS_SETTINGS+=("CLOUDSCHED_QUEUE_ADMIN=on")
      ;;
    sweep)
      # Always private: only Cloud Scheduler's account may call it.
      ACCESS_SETTINGS+=(
        "CLOUDSCHED_SWEEPER=$(require ACCOUNT_EMAILS invoker)" "CLOUDSCHED_AUDIENCES=$(require SERVICE_URLS sweep)"
        "CLOUDSCHED_TRUST_CLOUD_RUN=on"
      )
      ;;
  esac
}

# Set PUBLIC_SETTINGS to the address that links in mails begin with: the api's, if everybody reaches that, or else that
# of the function for links, if there is one. SETTINGS may name another one, such as a domain of your own.
set_public_settings() {
  local IFS=' '
  PUBLIC_SETTINGS=()
  [[ " ${SETTINGS[*]}" != *" CLOUDSCHED_PUBLIC_URL="* ]] || return 0
  if [[ "$API_ACCESS" == public ]]; then
    PUBLIC_SETTINGS=("CLOUDSCHED_PUBLIC_URL=$(require SERVICE_URLS api)")
  elif [[ "$PUBLIC_LINKS" == yes ]]; then
    PUBLIC_SETTINGS=("CLOUDSCHED_PUBLIC_URL=$(require SERVICE_URLS links)")
  fi
}

# Refuse secrets of yours that are not there, before anything is changed. A dry run looks, too, if gcloud can. Set KEYS_VERSION
# to the newest enabled version of that with the API keys, which new revisions mount.
find_secret_versions() {
  local entry secret version found asking
  KEYS_VERSION=1
  for entry in "${SECRETS[@]}" ${API_KEYS_SECRET:+"=$API_KEYS_SECRET:"}; do
    secret="${entry#*=}" version="${entry##*:}"
    asking=(gcloud secrets versions list "${secret%:*}" --filter="state=ENABLED" --sort-by="~createTime"
      --format="value(name.basename())" --project="$PROJECT" --quiet)
    found="$(query "${asking[@]}")" || found=""
    if [[ "$MODE" == dry-run ]] && ! found="$("${asking[@]}" 2>&1)" && [[ "$found" != *NOT_FOUND* ]]; then
      log "Whether there is a secret $secret cannot be looked at: $found"
      found="${version:=KEYS_VERSION}"
    fi
    version="${version:-${found%%$'\n'*}}"
    has_line "${version:-none}" "$found" || die "Secret ${secret%:*} does not exist or has no enabled version $version. Create \
it: gcloud secrets create ${secret%:*} --data-file=FILE --project=$PROJECT (for API_KEYS_SECRET, from what \
\`cloudsched admin keys new\` prints)."
    [[ "$entry" != =* ]] || KEYS_VERSION="$version"
  done
}

# Refuse to create a revision that accepts unsigned tokens while the public may still reach the API.
require_closed_api() {
  local opened remaining
  [[ "$API_ACCESS" == private ]] || return 0
  opened="$(get LEDGER open.api)"
  [[ "$opened" != yes ]] ||
    die "$NAME-api is public. Run infra/deploy.sh, which makes it private, and then this script again."
  remaining=$((${opened:-0} + IAM_PROPAGATION_SECONDS - $(date +%s)))
  ((remaining <= 0)) || die "$NAME-api was made private only recently, and the change takes some minutes to reach every \
server. Try again in $(((remaining + 59) / 60)) minutes."
  record "open.api=none" "trust.api=yes"
}

# Set TRUST_AFTER_UPGRADE to the value of `trust.api` once an upgrade has moved all requests.
set_trust_after_upgrade() {
  TRUST_AFTER_UPGRADE=none
  if [[ "$API_ACCESS" == private ]]; then
    TRUST_AFTER_UPGRADE=yes
  elif [[ "$(get LEDGER trust.api)" == yes ]]; then
    TRUST_AFTER_UPGRADE=previous
  fi
}

# Test whether Cloud Run lets everybody through to a function without looking at roles.
is_unchecked() {
  local found
  found="$(query gcloud run services describe "$NAME-$1" --region="$REGION" --format="json(metadata.annotations)")" || return 1
  [[ "$(get_json_annotation run.googleapis.com/invoker-iam-disabled <<<"$found")" == true ]]
}

get_json_annotation() {
  python3 -c '
import json, sys
found = (json.load(sys.stdin) or {}).get("metadata", {}).get("annotations", {})
print(found.get(sys.argv[1], ""), end="")' "$1"
}

# open_function FUNCTION: let everybody call it, unless everybody may.
open_function() {
  ! has_binding allUsers roles/run.invoker gcloud run services get-iam-policy "$NAME-$1" --region="$REGION" ||
    return 0
  ! is_unchecked "$1" || return 0
  change "let everybody call function $NAME-$1" open_to_everybody "$NAME-$1"
}

# Where an organisation shares only with its own domains (iam.allowedPolicyMemberDomains), no role may name allUsers. Google's
# way for a public service is then to check no role at all.
open_to_everybody() {
  local errors granting=(gcloud run services add-iam-policy-binding "$1" --region="$REGION" --member=allUsers
    --role=roles/run.invoker --format=none --project="$PROJECT" --quiet)
  errors="$("${granting[@]}" 2>&1 >/dev/null)" && return 0
  if [[ ! "$(lower "$errors")" =~ permitted\ customer|organization\ policy|allowedpolicymember ]]; then
    printf '%s\n' "$errors" >&2
    return 1
  fi
  log "  The organisation's policy forbids roles for allUsers, so Cloud Run is told to check no role for this function."
  gcloud run services update "$1" --region="$REGION" --no-invoker-iam-check --project="$PROJECT" --quiet ||
    die "The organisation's policies allow no public service: neither a role for allUsers (iam.allowedPolicyMemberDomains) \
nor a service without a check (run.managed.requireInvokerIam). Ask for an exception for project $PROJECT, or put a load \
balancer in front and set API_ACCESS=private; see docs/guides/access.md."
}

# close_function FUNCTION: let only those call it who have the role.
close_function() {
  if has_binding allUsers roles/run.invoker gcloud run services get-iam-policy "$NAME-$1" --region="$REGION"; then
    change "make function $NAME-$1 private" gcloud run services remove-iam-policy-binding "$NAME-$1" \
      --region="$REGION" --member=allUsers --role=roles/run.invoker
  fi
  if is_unchecked "$1"; then
    change "make function $NAME-$1 private: check roles again" gcloud run services update "$NAME-$1" \
      --region="$REGION" --invoker-iam-check
  fi
}

close_api() {
  [[ "$API_ACCESS" == private ]] || return 0
  close_function api
  [[ "$(get LEDGER open.api)" != yes ]] || record "open.api=$(date +%s)"
}

# Let everybody call the function for links, which answers 404 to all else; or nobody, once it is not wanted any more.
expose_links() {
  if [[ "$PUBLIC_LINKS" == yes ]]; then
    open_function links
  elif is_managed function.links; then
    close_function links
  fi
}

open_api() {
  [[ "$API_ACCESS" == public ]] || return 0
  case "$(get LEDGER trust.api)" in
    yes)
      report_difference "function $NAME-api is not public yet; run infra/upgrade.sh, then infra/deploy.sh"
      return
      ;;
    # A rollback would bring back revisions that accept unsigned tokens, so rule it out.
    previous) record "previous.execute=none" "previous.sweep=none" "previous.api=none" "previous.links=none" "trust.api=none" ;;
  esac
  record "open.api=yes"
  open_function api
}

grant_invoker_roles() {
  log_step "Who may invoke the functions"
  local function entry
  for function in execute sweep; do
    grant_role "function $NAME-$function" "serviceAccount:$(require ACCOUNT_EMAILS invoker)" roles/run.invoker -- \
      gcloud run services -- "$NAME-$function" --region="$REGION"
  done
  for entry in "${API_ACCOUNTS[@]}"; do
    # Our own smoke account may call the API only during a smoke test.
    [[ "${entry%%=*}" != "$(require ACCOUNT_EMAILS smoke)" ]] || continue
    grant_role "function $NAME-api" "serviceAccount:${entry%%=*}" roles/run.invoker -- \
      gcloud run services -- "$NAME-api" --region="$REGION"
  done
  open_api
  expose_links
}
