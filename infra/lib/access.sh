# Who comes in to the api: what it is told of them, who gets past Cloud Run to it, and as whom the smoke test calls.
#
# Cloud Run takes the signature off a token that it has checked, so a private api must believe tokens without one
# (CLOUDSCHED_TRUST_CLOUD_RUN), and a public one must not: there anybody could write such a token. At no instant may a
# revision that believes them be reached by everybody. The ledger has what that takes: `open.api` is "yes" while the api
# is public, and the second when it was closed after that; `trust.api` is "yes" while a revision may get requests that
# believes them, and "previous" while none but a rollback could bring one back.
# shellcheck shell=bash disable=SC2034,SC2153 # ACCESS and TRUST_BECOMES are used by the scripts; what is used is in the configuration

# Google says that a change of roles takes effect within two minutes, and that it may take seven or more.
UNTIL_CLOSED=600

# Set ACCESS to the settings by which a function tells who calls.
access_of() {
  local IFS=' '
  ACCESS=()
  case "$1" in
    api)
      ACCESS=(
        "CLOUDSCHED_SERVICE_ACCOUNTS=${API_ACCOUNTS[*]}"
        "CLOUDSCHED_AUDIENCES=$(service_url api)${API_ADDRESSES:+ $API_ADDRESSES}"
        ${FIREBASE_PROJECT:+"CLOUDSCHED_FIREBASE_PROJECT=$FIREBASE_PROJECT"}
        ${CORS_ORIGINS:+"CLOUDSCHED_CORS_ORIGINS=$CORS_ORIGINS"}
        ${MAX_ACTIVE_TASKS:+"CLOUDSCHED_MAX_ACTIVE_TASKS=$MAX_ACTIVE_TASKS"}
        ${MAX_CREATIONS_A_MINUTE:+"CLOUDSCHED_MAX_CREATIONS_A_MINUTE=$MAX_CREATIONS_A_MINUTE"}
      )
      [[ "$API_ACCESS" == public ]] || ACCESS+=("CLOUDSCHED_TRUST_CLOUD_RUN=on")
      ;;
    sweep)
      # Always private: nobody but Cloud Scheduler's account may call it.
      ACCESS=(
        "CLOUDSCHED_SWEEPER=$(account invoker)" "CLOUDSCHED_AUDIENCES=$(service_url sweep)"
        "CLOUDSCHED_TRUST_CLOUD_RUN=on"
      )
      ;;
  esac
}

# Set KEYS_VERSION to the newest version of the secret with the API keys: each revision has the keys of its day.
find_api_keys() {
  KEYS_VERSION=1
  [[ -n "$API_KEYS_SECRET" ]] || return 0
  KEYS_VERSION="$(ask gcloud secrets versions list "$API_KEYS_SECRET" --filter="state=ENABLED" --sort-by="~createTime" \
    --limit=1 --format="value(name.basename())" --project="$PROJECT" --quiet)" || KEYS_VERSION=""
  if [[ "$MODE" == dry-run ]]; then
    KEYS_VERSION=KEYS_VERSION
  fi
  [[ -n "$KEYS_VERSION" ]] || die "There is no secret $API_KEYS_SECRET with an enabled version. Make it of lines of \
\`cloudsched keys new\`: gcloud secrets create $API_KEYS_SECRET --data-file=FILE --project=$PROJECT"
}

# Refuse to make a revision that believes what Cloud Run has checked while not everything is checked by Cloud Run.
expect_closed() {
  local opened left
  [[ "$API_ACCESS" == private ]] || return 0
  opened="$(ledger open.api)"
  [[ "$opened" != yes ]] || die "$NAME-api is open to the public. Run infra/deploy.sh, which closes it, and then this."
  left=$((${opened:-0} + UNTIL_CLOSED - $(date +%s)))
  ((left <= 0)) || die "$NAME-api was closed a moment ago, which takes effect everywhere only after some minutes. \
Come back in $(((left + 59) / 60)) minutes."
  record "open.api=none" "trust.api=yes"
}

# Set TRUST_BECOMES to what `trust.api` is once an upgrade has moved all requests.
trust_after_upgrade() {
  TRUST_BECOMES=none
  if [[ "$API_ACCESS" == private ]]; then
    TRUST_BECOMES=yes
  elif [[ "$(ledger trust.api)" == yes ]]; then
    TRUST_BECOMES=previous
  fi
}

close_api() {
  [[ "$API_ACCESS" == private ]] || return 0
  if holds allUsers roles/run.invoker gcloud run services get-iam-policy "$NAME-api" --region="$REGION" \
    --project="$PROJECT" --quiet; then
    change "close function $NAME-api to the public" gcloud run services remove-iam-policy-binding "$NAME-api" \
      --region="$REGION" --member=allUsers --role=roles/run.invoker --project="$PROJECT" --quiet
  fi
  [[ "$(ledger open.api)" != yes ]] || record "open.api=$(date +%s)"
}

open_api() {
  [[ "$API_ACCESS" == public ]] || return 0
  case "$(ledger trust.api)" in
    yes)
      CHANGES=$((CHANGES + 1))
      printf 'differs: function %s is not public yet; run infra/upgrade.sh, then infra/deploy.sh\n' "$NAME-api"
      return
      ;;
    # The revisions to which a rollback would go believe tokens without a signature.
    previous) record "previous.execute=none" "previous.sweep=none" "previous.api=none" "trust.api=none" ;;
  esac
  record "open.api=yes"
  bind "function $NAME-api" allUsers roles/run.invoker -- gcloud run services -- "$NAME-api" --region="$REGION"
}

bind_invokers() {
  step "Who may call the functions"
  local function entry
  for function in execute sweep; do
    bind "function $NAME-$function" "serviceAccount:$(account invoker)" roles/run.invoker -- \
      gcloud run services -- "$NAME-$function" --region="$REGION"
  done
  for entry in "${API_ACCOUNTS[@]}"; do
    bind "function $NAME-api" "serviceAccount:${entry%%=*}" roles/run.invoker -- \
      gcloud run services -- "$NAME-api" --region="$REGION"
  done
  open_api
}

# ── The smoke test's account ─────────────────────────────────────────────────────────────────────────────────────────

# Let whoever runs this act as the smoke test's account. One that the configuration names is left as it is.
act_as_smoke() {
  API_SIGN_IN=(
    gcloud auth print-identity-token --impersonate-service-account="$SMOKE_ACCOUNT" --audiences="$(service_url api)"
    --include-email
  )
  [[ "$SMOKE_ACCOUNT" == "$(account smoke)" ]] || return 0
  local me
  me="$(ask gcloud config get account --quiet)" || me=""
  [[ "$MODE" != dry-run ]] || me=YOU
  [[ -n "$me" ]] || die "Nobody is signed in: gcloud auth login."
  if [[ "$me" == *.gserviceaccount.com ]]; then
    me="serviceAccount:$me"
  else
    me="user:$me"
  fi
  bind "account $NAME-smoke" "$me" roles/iam.serviceAccountTokenCreator -- \
    gcloud iam service-accounts -- "$SMOKE_ACCOUNT"
}
