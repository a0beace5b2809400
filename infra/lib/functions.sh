# The three functions, what calls them, and how a new revision takes over.
# shellcheck shell=bash disable=SC2153 # SETTINGS is in the configuration

SOURCE="$INFRA/../build/functions-source"

# The secret versions that a function is given. While a secret is being rotated the executor accepts two.
secrets_of() {
  local current other
  current="$(ledger secret.current)"
  printf 'CLOUDSCHED_SECRET=%s:%s' "$SECRET" "${current:-1}"
  [[ "$1" != api || -z "$API_KEYS_SECRET" ]] || printf ',CLOUDSCHED_API_KEYS=%s:%s' "$API_KEYS_SECRET" "$KEYS_VERSION"
  [[ "$1" == execute ]] || return 0
  other="$(ledger secret.next)"
  other="${other:-$(ledger secret.previous)}"
  [[ -z "$other" ]] || printf ',CLOUDSCHED_PREVIOUS_SECRET=%s:%s' "$SECRET" "$other"
}

# Set FLAGS to all that `gcloud functions deploy` is told of a function, but for its source.
flags_of() {
  local function="$1" account concurrency minimum maximum timeout ingress settings
  access_of "$function"
  case "$function" in
    api)
      account=api concurrency="$API_CONCURRENCY" minimum="$API_MIN_INSTANCES" maximum="$API_MAX_INSTANCES"
      timeout=60 ingress=all
      ;;
    execute)
      account=executor concurrency="$EXECUTE_CONCURRENCY" minimum="$EXECUTE_MIN_INSTANCES"
      maximum="$EXECUTE_MAX_INSTANCES" timeout="$EXECUTE_TIMEOUT" ingress=internal-only
      ;;
    sweep) account=executor concurrency=1 minimum=0 maximum=3 timeout="$SWEEP_TIMEOUT" ingress=internal-only ;;
  esac
  settings=(
    "GOOGLE_CLOUD_PROJECT=$PROJECT"
    "CLOUDSCHED_LOCATION=$REGION"
    "CLOUDSCHED_QUEUE=$NAME"
    "CLOUDSCHED_DATABASE=$DATABASE"
    "CLOUDSCHED_EXECUTOR_URL=$(service_url execute)"
    "CLOUDSCHED_INVOKER=$(account invoker)"
    # functions-framework's gunicorn has four threads a CPU unless told; Cloud Run would send more than it serves.
    "THREADS=$concurrency"
    # A durable handler goes on in another call before this one is over.
    "CLOUDSCHED_TIME_LIMIT_SECONDS=$timeout"
    ${BUCKET:+"CLOUDSCHED_BUCKET=$BUCKET"}
    "${ACCESS[@]}"
    "${SETTINGS[@]}"
  )
  local IFS='~'
  FLAGS=(
    --gen2 --region="$REGION" --runtime="$RUNTIME" --entry-point="$function" --trigger-http --no-allow-unauthenticated
    --service-account="$(account "$account")"
    --build-service-account="projects/$PROJECT/serviceAccounts/$(account builder)"
    --memory="$MEMORY" --cpu=1 --concurrency="$concurrency" --timeout="${timeout}s"
    --min-instances="$minimum" --max-instances="$maximum" --ingress-settings="$ingress"
    --update-labels="managed-by=cloudsched,deployment=$NAME"
    --set-env-vars="^~^${settings[*]}" --set-secrets="$(secrets_of "$function")"
  )
}

# What a function is made of and told, as a short hash; the dispatch secret's versions excepted, which a rotation changes.
digest_of() {
  flags_of "$1"
  {
    (cd "$INFRA/.." && find src pyproject.toml -type f -not -path '*/__pycache__/*' -print0 | sort -z | xargs -0 sha256sum)
    (cd "$FUNCTIONS_DIR" && find . -type f -not -path '*/__pycache__/*' -print0 | sort -z | xargs -0 sha256sum)
    printf '%s\n' "${FLAGS[@]}" | grep -v '^--set-secrets='
    [[ "$1" != api || -z "$API_KEYS_SECRET" ]] || printf '%s\n' "$API_KEYS_SECRET:$KEYS_VERSION"
  } | sha256sum | cut -c1-16
}

schema_version() { sed -n 's/^SCHEMA_VERSION = \([0-9]*\)$/\1/p' "$INFRA/../src/cloudsched/domain/document.py"; }

build_source() {
  [[ "$MODE" != check ]] || return 0
  change "build the functions' source" "$INFRA/build-source.sh" "$FUNCTIONS_DIR" "$SOURCE"
}

deploy_function() {
  flags_of "$1"
  change "deploy function $NAME-$1 (some minutes)" gcloud functions deploy "$NAME-$1" "${FLAGS[@]}" --source="$SOURCE" \
    --project="$PROJECT" --quiet
}

function_state() {
  ask gcloud functions describe "$NAME-$1" --gen2 --region="$REGION" --format="value(state)" --project="$PROJECT" --quiet
}

OUTDATED=() # the functions that are not what the configuration says

# Deploy what has never been deployed. What runs already is changed by upgrade.sh, which can go back.
deploy_functions() {
  step "Functions"
  local function state digest is_built=""
  for function in "${FUNCTIONS[@]}"; do
    state="$(function_state "$function")" || state=""
    digest="$(digest_of "$function")"
    if [[ "$state" == ACTIVE && -n "$(ledger "digest.$function")" ]]; then
      [[ "$(ledger "digest.$function")" == "$digest" ]] || OUTDATED+=("$function")
      continue
    fi
    if [[ -n "$state" ]] && ! is_ours "function.$function"; then
      die "There is a function $NAME-$function that is not ours. Set NAME to something else."
    fi
    if [[ -z "$is_built" ]]; then
      build_source
      is_built=yes
    fi
    [[ "$function" != api ]] || expect_closed
    mark "function.$function"
    deploy_function "$function"
    record "digest.$function=$digest" "schema=$(schema_version)"
    expect_address "$function"
  done
  ((${#OUTDATED[@]})) || return 0
  CHANGES=$((CHANGES + ${#OUTDATED[@]}))
  printf 'differs: %s; run infra/upgrade.sh\n' "${OUTDATED[*]/#/function $NAME-}"
}

# The functions are told their addresses before they exist; Cloud Run derives them from name, project and region.
expect_address() {
  [[ "$MODE" == apply ]] || return 0
  local found
  found="$(ask gcloud run services describe "$NAME-$1" --region="$REGION" --format="json(metadata.annotations)" \
    --project="$PROJECT" --quiet)" || found=""
  grep -qF "$(service_url "$1")" <<<"$found" ||
    die "Cloud Run did not give $NAME-$1 the address $(service_url "$1"). It has: $found"
}

# No retries: a sweep that failed is followed by the next one within a minute.
create_sweep_job() {
  step "Cloud Scheduler"
  local url found flags wanted
  url="$(service_url sweep)"
  flags=(
    --location="$REGION" --schedule="$SWEEP_SCHEDULE" --time-zone=Etc/UTC --uri="$url/" --http-method=post
    --oidc-service-account-email="$(account invoker)" --oidc-token-audience="$url"
    --attempt-deadline="${SWEEP_TIMEOUT}s" --max-retry-attempts=0
    --description="Made by cloudsched for the deployment $NAME" --project="$PROJECT" --quiet
  )
  wanted="$(printf '%s\t%s\t%s\t%s' "$SWEEP_SCHEDULE" "$url/" "$(account invoker)" "${SWEEP_TIMEOUT}s")"
  if ! found="$(ask gcloud scheduler jobs describe "$NAME-sweep" --location="$REGION" --project="$PROJECT" --quiet \
    --format="value(schedule,httpTarget.uri,httpTarget.oidcToken.serviceAccountEmail,attemptDeadline)")"; then
    mark job
    change "create the job $NAME-sweep" gcloud scheduler jobs create http "$NAME-sweep" "${flags[@]}"
  elif [[ "$found" != "$wanted" ]]; then
    change "update the job $NAME-sweep" gcloud scheduler jobs update http "$NAME-sweep" "${flags[@]}"
  fi
}

# ── Traffic ──────────────────────────────────────────────────────────────────────────────────────────────────────────

# shift_traffic FUNCTION REVISION=PERCENT,…
shift_traffic() {
  change "send $NAME-$1 to $2" gcloud run services update-traffic "$NAME-$1" --region="$REGION" --to-revisions="$2" \
    --project="$PROJECT" --quiet
}

# The revision that serves all requests; nothing if they are split.
serving_revision() {
  if [[ "$MODE" == dry-run ]]; then
    ask gcloud run services describe "$NAME-$1" --region="$REGION" --flatten="status.traffic" \
      --format="value(status.traffic.percent,status.traffic.revisionName)" --project="$PROJECT" --quiet || true
    printf 'SERVING-%s' "$1"
    return
  fi
  ask gcloud run services describe "$NAME-$1" --region="$REGION" --flatten="status.traffic" \
    --format="value(status.traffic.percent,status.traffic.revisionName)" --project="$PROJECT" --quiet |
    sed -n 's/^100\t//p' | head -n 1
}

latest_revision() {
  ask gcloud run services describe "$NAME-$1" --region="$REGION" --format="value(status.latestReadyRevisionName)" \
    --project="$PROJECT" --quiet || printf 'CANDIDATE-%s' "$1"
}
