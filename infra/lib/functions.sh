# The functions, the job that calls the sweep, and how traffic moves between revisions.
# shellcheck shell=bash disable=SC2153 # the configuration sets SETTINGS

SOURCE_DIR="$INFRA/../build/functions-source"

# Print the secret versions that a function mounts. During a rotation the executor accepts two.
get_secret_mounts() {
  local current other
  {
    if [[ "$1" != links ]]; then # it signs nothing: the key of its links is in the database
      current="$(get LEDGER secret.current)"
      printf 'CLOUDSCHED_SECRET=%s:%s\n' "$SECRET" "${current:-1}"
    fi
    [[ "$1" != api || -z "$API_KEYS_SECRET" ]] || printf 'CLOUDSCHED_API_KEYS=%s:%s\n' "$API_KEYS_SECRET" "$KEYS_VERSION"
    list_secrets "$1"
    if [[ "$1" == execute ]]; then
      other="$(get LEDGER secret.next)"
      other="${other:-$(get LEDGER secret.previous)}"
      [[ -z "$other" ]] || printf 'CLOUDSCHED_PREVIOUS_SECRET=%s:%s\n' "$SECRET" "$other"
    fi
  } | paste -sd, -
}

# list_run_flags FUNCTION: print the entries of RUN_FLAGS for a function, each on a line, without those for builds.
list_run_flags() {
  local entry
  for entry in "${RUN_FLAGS[@]}"; do
    [[ "$entry" != *--build-* ]] || continue
    [[ "$entry" != --* && "+${entry%% --*}+" != *"+$1+"* ]] || printf '%s\n' "--${entry#*--}"
  done
}

# Set DEPLOY_FLAGS to the flags of `gcloud run deploy` for a function, except its source or image.
set_deploy_flags() {
  local function="$1" account concurrency minimum maximum timeout ingress settings secrets flag
  set_access_settings "$function"
  set_public_settings
  set_backend_settings
  case "$function" in
    api)
      account=api concurrency="$API_CONCURRENCY" minimum="$API_MIN_INSTANCES" maximum="$API_MAX_INSTANCES"
      timeout=60 ingress="$API_INGRESS"
      ;;
    links)
      account=links concurrency="$API_CONCURRENCY" minimum=0 maximum="$LINKS_MAX_INSTANCES" timeout=60 ingress="$API_INGRESS"
      ;;
    execute)
      account=executor concurrency="$EXECUTE_CONCURRENCY" minimum="$EXECUTE_MIN_INSTANCES"
      maximum="$EXECUTE_MAX_INSTANCES" timeout="$EXECUTE_TIMEOUT" ingress=internal
      ;;
    sweep) account=executor concurrency=1 minimum=0 maximum=3 timeout="$SWEEP_TIMEOUT" ingress=internal ;;
  esac
  settings=(
    "FUNCTION_TARGET=$function" # all run one image
    "${BACKEND_SETTINGS[@]}"
    # functions-framework's default is four threads per CPU, fewer than the requests that Cloud Run sends at a time.
    "THREADS=$concurrency"
    # A durable handler suspends before this limit and continues in another call.
    "CLOUDSCHED_TIME_LIMIT_SECONDS=$timeout"
    ${BUCKET:+"CLOUDSCHED_BUCKET=$BUCKET"}
    "${ACCESS_SETTINGS[@]}"
    "${PUBLIC_SETTINGS[@]}"
    "${SETTINGS[@]}"
  )
  secrets="$(get_secret_mounts "$function")"
  local IFS='~'
  DEPLOY_FLAGS=(
    --region="$REGION" --no-allow-unauthenticated --service-account="$(require ACCOUNT_EMAILS "$account")"
    --memory="$MEMORY" --cpu=1 --concurrency="$concurrency" --timeout="${timeout}s"
    --min-instances="$minimum" --max-instances="$maximum" --ingress="$ingress"
    --set-env-vars="^~^${settings[*]}"
  )
  ! uses_scripts || DEPLOY_FLAGS+=(--execution-environment=gen2)
  if [[ -n "$secrets" ]]; then
    DEPLOY_FLAGS+=(--set-secrets="$secrets")
  else
    DEPLOY_FLAGS+=(--clear-secrets)
  fi
  while IFS= read -r flag; do
    DEPLOY_FLAGS+=("$flag")
  done < <(list_run_flags "$function")
}

# Test whether the functions run scripts of users. These demand a filter of system calls, for which the environment has to be a
# full Linux (cloud.google.com/run/docs/about-execution-environments): the second generation is, and wants 512 MiB.
uses_scripts() {
  grep -qsiE '^cloudsched *\[[^]]*(sandbox|all)[^]]*\]' "$FUNCTIONS_DIR/requirements.txt" || return 1
  [[ ! "$MEMORY" =~ ^([0-9]+)Mi$ ]] || ((BASH_REMATCH[1] >= 512)) ||
    die "MEMORY is $MEMORY, but functions that run scripts need 512Mi or more."
}

SOURCE_HASHES="" # a line for each file that is deployed, its own files and cloudsched's
# The map DIGESTS has those that are known already: neither code nor settings change while a script runs.

# Set DIGEST to a short hash of a function's code and settings, except the dispatch secret's versions, which a rotation
# changes. The files are read once: they are the same for all functions.
set_digest() {
  local flag
  DIGEST="$(get DIGESTS "$1")"
  [[ -z "$DIGEST" ]] || return 0
  [[ -n "$SOURCE_HASHES" ]] ||
    SOURCE_HASHES="$(python3 "$INFRA/build_source.py" --digest "$FUNCTIONS_DIR" "${FUNCTIONS_FILES[@]}")"
  set_deploy_flags "$1"
  DIGEST="$({
    printf '%s\n' "$SOURCE_HASHES"
    printf '%s\n' "$RUNTIME" "${LABELS[@]}"
    for flag in "${DEPLOY_FLAGS[@]}"; do
      [[ "$flag" == --set-secrets=* ]] || printf '%s\n' "$flag"
    done
    [[ "$1" != api || -z "$API_KEYS_SECRET" ]] || printf '%s\n' "$API_KEYS_SECRET:$KEYS_VERSION"
    list_secrets "$1"
  } | openssl dgst -sha256)"
  DIGEST="${DIGEST##* }" # some versions print a name before it
  DIGEST="${DIGEST:0:16}"
  put DIGESTS "$1" "$DIGEST"
}

get_schema_version() {
  local line
  while read -r line; do
    [[ ! "$line" =~ ^SCHEMA_VERSION\ =\ ([0-9]+)$ ]] || printf '%s' "${BASH_REMATCH[1]}"
  done <"$INFRA/../src/cloudsched/domain/documents/document.py"
}

# Warn of handlers that the platform would stop before they have the time that they ask for.
warn_of_long_handlers() {
  local line
  while IFS= read -r line; do
    log "Warning: the handler $line, and EXECUTE_TIMEOUT is $EXECUTE_TIMEOUT: its runs would be stopped then. Raise that \
(1800 at most), make it durable (docs/guides/workflows.md), or let a worker run it (docs/guides/workers.md)."
  done < <(python3 "$INFRA/build_source.py" --long-handlers "$FUNCTIONS_DIR" "$EXECUTE_TIMEOUT")
}

build_source() {
  [[ "$MODE" != check ]] || return 0
  warn_of_long_handlers
  export RUNTIME
  change "build the functions' source" "$INFRA/build_source.py" "$FUNCTIONS_DIR" "$SOURCE_DIR" "${FUNCTIONS_FILES[@]}"
}

COMMIT="" # the commit of this checkout, once it is known

REPOSITORY="" # where the images are kept, once it is there
IMAGE=""      # the image that this run has built, by digest
BASE_IMAGE="" # what Google puts below it, and keeps up to date

# Make the repository of the images. A policy removes old ones: the last twenty stay, and what is younger than a month.
create_repository() {
  [[ -z "$REPOSITORY" ]] || return 0
  ensure "repository $NAME for the functions' images" "repository/$NAME" repository \
    gcloud artifacts repositories describe "$NAME" --location="$REGION" --format="value(name)" -- \
    gcloud artifacts repositories create "$NAME" --repository-format=docker --location="$REGION" \
    --description="Created by cloudsched for the deployment $NAME"
  if is_managed repository && [[ "$(get LEDGER images)" != cleaned || "$MODE" == dry-run ]]; then
    change "let a policy remove old images" gcloud artifacts repositories set-cleanup-policies "$NAME" \
      --location="$REGION" --policy="$INFRA/images.json" --no-dry-run
    record "images=cleaned"
  fi
  REPOSITORY="$REGION-docker.pkg.dev/$PROJECT/$NAME"
}

# deploy_function FUNCTION: create a revision, labelled with the commit that it was built from. The first function of a run is
# built from the source, and the others run its image.
deploy_function() {
  local source=() entry
  set_deploy_flags "$1"
  [[ -n "$COMMIT" ]] || COMMIT="$(get_commit)"
  if [[ -z "$IMAGE" ]]; then
    create_repository
    source=(
      --source="$SOURCE_DIR" --image="$REPOSITORY" --function="$1" --base-image="$RUNTIME" --automatic-updates
      --build-service-account="projects/$PROJECT/serviceAccounts/$(require ACCOUNT_EMAILS builder)"
    )
    for entry in "${RUN_FLAGS[@]}"; do
      [[ "$entry" != *--build-* ]] || source+=("--${entry#*--}")
    done
  else
    source=(--image="$IMAGE" --base-image="$BASE_IMAGE")
  fi
  change "deploy function $NAME-$1${source[5]+ (some minutes: it is built)}" gcloud run deploy "$NAME-$1" \
    "${DEPLOY_FLAGS[@]}" "${source[@]}" --update-labels="$(list_labels "commit=$COMMIT")"
  [[ -n "$IMAGE" || "$MODE" == check ]] || find_built_image "$(get_latest_revision "$1")"
}

# find_built_image REVISION: set IMAGE and BASE_IMAGE to those of a revision that was built from the source.
find_built_image() {
  local found
  found="$(query gcloud run revisions describe "$1" --region="$REGION" --format="json(metadata.annotations,status.imageDigest)")" ||
    found='{"status": {"imageDigest": "IMAGE"}}'
  read -r IMAGE BASE_IMAGE < <(python3 -c '
import json, sys
found = json.load(sys.stdin)
bases = json.loads(found.get("metadata", {}).get("annotations", {}).get("run.googleapis.com/base-images", "{}"))
print(found["status"]["imageDigest"], next(iter(bases.values()), sys.argv[1]))' "$RUNTIME" <<<"$found")
}

# Print the commit of this checkout as a label, with -changed if files differ from it, or "unknown".
get_commit() {
  local commit
  commit="$(git -C "$INFRA" rev-parse HEAD 2>/dev/null)" || commit="unknown"
  [[ "$commit" == unknown || -z "$(git -C "$INFRA/.." status --porcelain --untracked-files=no)" ]] || commit+="-changed"
  printf '%s' "$commit"
}

# Print the image that a revision runs, by digest.
get_image() {
  query gcloud run revisions describe "$1" --region="$REGION" --format="value(status.imageDigest)" ||
    printf 'IMAGE'
}

# Print the latest ready revision of a function, or an empty line if none is ready; fail if there is no such service.
get_ready_revision() {
  query gcloud run services describe "$NAME-$1" --region="$REGION" --format="value(status.latestReadyRevisionName)"
}

# Test whether a function's code or settings differ from the configuration, or its last upgrade was not completed.
is_outdated() {
  set_digest "$1"
  [[ "$(get LEDGER "digest.$1")" != "$DIGEST" || -n "$(get LEDGER "serving.$1")" ]]
}

# Test whether a function is deployed that is outdated.
has_outdated_functions() {
  local function
  for function in "${FUNCTIONS[@]}"; do
    [[ -n "$(get LEDGER "digest.$function")" ]] || continue
    ! is_outdated "$function" || return 0
  done
  return 1
}

OUTDATED=() # the deployed functions that upgrade.sh would change

# Deploy the functions that have never been deployed. upgrade.sh changes those that run, because it can roll back.
deploy_functions() {
  log_step "Functions"
  local function revision exists is_built=""
  for function in "${FUNCTIONS[@]}"; do
    exists=yes
    revision="$(get_ready_revision "$function")" || exists=""
    if [[ -n "$revision" && -n "$exists" && -n "$(get LEDGER "digest.$function")" ]]; then
      ! is_outdated "$function" || OUTDATED+=("$function")
      continue
    fi
    set_digest "$function"
    [[ -z "$exists" ]] || require_ours "function/$NAME-$function" "function.$function"
    if [[ -z "$is_built" ]]; then
      build_source
      is_built=yes
    fi
    [[ "$function" != api ]] || require_closed_api
    require_same_database "$function"
    [[ -n "$exists" ]] || record "created.function.$function=yes"
    deploy_function "$function"
    revision="$(get_latest_revision "$function")"
    record "digest.$function=$DIGEST" "image.$function=$(get_image "$revision")" "schema=$(get_schema_version)" \
      "database=$DATABASE"
    verify_address "$function"
  done
  ((${#OUTDATED[@]})) || return 0
  CHANGES=$((CHANGES + ${#OUTDATED[@]}))
  printf 'differs: %s; run infra/upgrade.sh\n' "${OUTDATED[*]/#/function $NAME-}"
}

# Refuse to add a function that would use another database than those that serve.
require_same_database() {
  local deployed
  deployed="$(get_deployed_database)"
  [[ -z "$deployed" || "$deployed" == "$DATABASE" ]] || die "$NAME-$1 would use database $DATABASE, but the other functions \
use $deployed. Set DATABASE=\"$deployed\" and run this again; then move with infra/upgrade.sh."
}

# Check that a function has the URL that the settings already contain: Cloud Run derives it from name, project and
# region.
verify_address() {
  [[ "$MODE" == apply ]] || return 0
  local found
  found="$(query gcloud run services describe "$NAME-$1" --region="$REGION" --format="json(metadata.annotations)")" || found=""
  [[ "$found" == *"$(require SERVICE_URLS "$1")"* ]] ||
    die "$NAME-$1 does not have the expected URL $(require SERVICE_URLS "$1"). It has: $found"
}

# The job has no retries: the next sweep follows within a minute anyway.
create_sweep_job() {
  log_step "Cloud Scheduler"
  local url found flags expected
  url="$(require SERVICE_URLS sweep)"
  flags=(
    --location="$REGION" --schedule="$SWEEP_SCHEDULE" --time-zone=Etc/UTC --uri="$url/" --http-method=post
    --oidc-service-account-email="$(require ACCOUNT_EMAILS invoker)" --oidc-token-audience="$url"
    --attempt-deadline="${SWEEP_TIMEOUT}s" --max-retry-attempts=0
    --description="Created by cloudsched for the deployment $NAME"
  )
  printf -v expected '%s\t%s\t%s\t%s' "$SWEEP_SCHEDULE" "$url/" "$(require ACCOUNT_EMAILS invoker)" "${SWEEP_TIMEOUT}s"
  if ! found="$(query gcloud scheduler jobs describe "$NAME-sweep" --location="$REGION" \
    --format="value(schedule,httpTarget.uri,httpTarget.oidcToken.serviceAccountEmail,attemptDeadline)")"; then
    mark_managed job
    change "create the job $NAME-sweep" gcloud scheduler jobs create http "$NAME-sweep" "${flags[@]}"
    return
  fi
  require_ours "job/$NAME-sweep" job "It has: ${found//$'\t'/, }."
  if [[ "$found" != "$expected" ]]; then
    change "update the job $NAME-sweep" gcloud scheduler jobs update http "$NAME-sweep" "${flags[@]}"
  fi
}

# ── Traffic ──────────────────────────────────────────────────────────────────────────────────────────────────────────

# shift_traffic FUNCTION REVISION=PERCENT,…
shift_traffic() {
  change "send $NAME-$1 to $2" gcloud run services update-traffic "$NAME-$1" --region="$REGION" --to-revisions="$2"
}

# Print the revision that serves all requests, or nothing if traffic is split.
get_serving_revision() {
  local found percent revision
  found="$(query gcloud run services describe "$NAME-$1" --region="$REGION" --flatten="status.traffic" \
    --format="value(status.traffic.percent,status.traffic.revisionName)")" || {
    [[ "$MODE" == dry-run ]] && found=$'100\tSERVING-'"$1"
  } || return
  while IFS=$'\t' read -r percent revision; do
    [[ "$percent" != 100 ]] || printf '%s' "$revision" # only one has all requests
  done <<<"$found"
}

get_latest_revision() { get_ready_revision "$1" || printf 'CANDIDATE-%s' "$1"; }
