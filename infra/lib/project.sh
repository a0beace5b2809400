# What the functions stand on: services, secret, accounts, database, rules and queues. Each step may be run any number
# of times: it looks at what is there and does what is missing.
# shellcheck shell=bash

SERVICES=(
  artifactregistry.googleapis.com     # keeps the functions' images
  cloudbuild.googleapis.com           # builds them
  cloudfunctions.googleapis.com
  cloudscheduler.googleapis.com       # calls the sweep
  cloudtasks.googleapis.com
  firebaserules.googleapis.com
  firestore.googleapis.com
  iam.googleapis.com
  iamcredentials.googleapis.com       # lets the smoke test act as its account
  run.googleapis.com                  # runs them
  secretmanager.googleapis.com
)

enable_services() {
  step "Services"
  local enabled service missing=()
  enabled="$(ask gcloud services list --enabled --format="value(config.name)" --project="$PROJECT" --quiet)" || enabled=""
  for service in "${SERVICES[@]}"; do
    grep -qxF "$service" <<<"$enabled" || missing+=("$service")
  done
  ((${#missing[@]})) || return 0
  change "enable ${missing[*]}" gcloud services enable "${missing[@]}" --project="$PROJECT" --quiet
}

# The secret comes first: its annotations are the ledger.
create_secret() {
  step "Secret"
  if ! read_ledger; then
    change "create secret $SECRET" gcloud secrets create "$SECRET" --replication-policy=automatic \
      --labels="managed-by=cloudsched,deployment=$NAME" --set-annotations="made.secret=yes" \
      --project="$PROJECT" --quiet
    LEDGER["made.secret"]="yes"
  fi
  is_ours secret || die "There is a secret $SECRET that is not ours. Set NAME to something else."
  local version
  version="$(ask gcloud secrets versions list "$SECRET" --filter="state=ENABLED" --sort-by="~createTime" --limit=1 \
    --format="value(name.basename())" --project="$PROJECT" --quiet)" || version=""
  if [[ -z "$version" ]]; then
    add_secret_version
    version="${NEW_VERSION:-1}"
  fi
  [[ -n "${LEDGER[secret.current]-}" ]] || record "secret.current=$version"
}

# 48 random bytes, which no argument list, file or log ever sees. Sets NEW_VERSION.
add_secret_version() {
  NEW_VERSION=""
  local adding=(gcloud secrets versions add "$SECRET" --data-file=- --format="value(name.basename())" --project="$PROJECT" --quiet)
  case "$MODE" in
    dry-run) printf 'openssl rand -base64 48 | %s\n' "$(typed "${adding[@]}")" ;;
    check) printf 'differs: add a version to secret %s\n' "$SECRET" ;;
    *)
      say "add a version to secret $SECRET"
      NEW_VERSION="$(openssl rand -base64 48 | tr -d '\n' | "${adding[@]}")"
      ;;
  esac
  CHANGES=$((CHANGES + 1))
}

create_accounts() {
  step "Service accounts"
  local role
  for role in "${ACCOUNTS[@]}"; do
    ensure "service account $(account "$role")" "account.$role" \
      gcloud iam service-accounts describe "$(account "$role")" --format="value(email)" --project="$PROJECT" --quiet -- \
      gcloud iam service-accounts create "$NAME-$role" --display-name="cloudsched $role" \
      --description="Made by cloudsched for the deployment $NAME" --project="$PROJECT" --quiet
  done
}

# Whether a member has a role: holds MEMBER ROLE COMMAND…, which prints a policy. (Not every `get-iam-policy` of gcloud
# has --filter.)
holds() {
  local member="$1" role="$2" found
  shift 2
  found="$(ask "$@" --flatten="bindings[].members" --format="value(bindings.role,bindings.members)")" || return 1
  grep -qxF "$role"$'\t'"$member" <<<"$found"
}

# Make sure of a binding: bind WHAT MEMBER ROLE [--condition=…] -- the command group and its resource, as in
# "gcloud secrets" "the-secret" and its flags.
bind() {
  local what="$1" member="$2" role="$3" condition=() group=() resource=()
  shift 3
  while [[ "$1" != -- ]]; do
    condition+=("$1")
    shift
  done
  shift
  while [[ "$1" != -- ]]; do
    group+=("$1")
    shift
  done
  shift
  resource=("$@" --project="$PROJECT" --quiet)
  ! holds "$member" "$role" "${group[@]}" get-iam-policy "${resource[@]}" || return 0
  change "let $member be $role on $what" patiently "${group[@]}" add-iam-policy-binding "${resource[@]}" \
    --member="$member" --role="$role" "${condition[@]}" --format=none
}

# The least that works: docs/deployment.md says why for each.
bind_project_roles() {
  step "Roles on the project"
  local role
  for role in api executor; do
    bind "database $DATABASE" "serviceAccount:$(account "$role")" roles/datastore.user \
      --condition="expression=resource.name==\"projects/$PROJECT/databases/$DATABASE\",title=$NAME-database" -- \
      gcloud projects -- "$PROJECT"
  done
  bind "project $PROJECT" "serviceAccount:$(account builder)" roles/cloudbuild.builds.builder --condition=None -- \
    gcloud projects -- "$PROJECT"
}

bind_resource_roles() {
  step "Roles on the secrets, the queues, the invoker and the bucket"
  local role priority
  for role in api executor; do
    bind "secret $SECRET" "serviceAccount:$(account "$role")" roles/secretmanager.secretAccessor -- \
      gcloud secrets -- "$SECRET"
    bind "account $NAME-invoker" "serviceAccount:$(account "$role")" roles/iam.serviceAccountUser -- \
      gcloud iam service-accounts -- "$(account invoker)"
    for priority in "${PRIORITIES[@]}"; do
      bind "queue $(queue_of "$priority")" "serviceAccount:$(account "$role")" roles/cloudtasks.enqueuer -- \
        gcloud tasks queues -- "$(queue_of "$priority")" --location="$REGION"
    done
  done
  [[ -z "$API_KEYS_SECRET" ]] || bind "secret $API_KEYS_SECRET" "serviceAccount:$(account api)" \
    roles/secretmanager.secretAccessor -- gcloud secrets -- "$API_KEYS_SECRET"
  [[ -n "$BUCKET" ]] || return 0
  ask gcloud storage buckets describe "gs://$BUCKET" --format="value(name)" --quiet >/dev/null ||
    [[ "$MODE" == dry-run ]] || die "There is no bucket $BUCKET. Make it: docs/deployment.md has the command."
  for role in api executor; do
    bind "bucket $BUCKET" "serviceAccount:$(account "$role")" roles/storage.objectUser -- \
      gcloud storage buckets -- "gs://$BUCKET"
  done
}

create_database() {
  step "Firestore"
  local kind
  kind="$(ask gcloud firestore databases describe --database="$DATABASE" --format="value(type)" --project="$PROJECT" --quiet)" || kind=""
  if [[ -z "$kind" ]]; then
    mark "database"
    change "create Firestore database $DATABASE in $FIRESTORE_LOCATION" gcloud firestore databases create \
      --database="$DATABASE" --location="$FIRESTORE_LOCATION" --type=firestore-native --delete-protection \
      --project="$PROJECT" --quiet
  elif [[ "$kind" != FIRESTORE_NATIVE ]]; then
    die "Database $DATABASE is $kind. cloudsched needs Firestore in native mode: set DATABASE to another id."
  fi
}

# missing_indexes KIND FILE ASKING-COMMAND: what the database does not have yet, as `lib/firestore_indexes.py` puts it.
missing_indexes() {
  local kind="$1" file="$2" found
  shift 2
  found="$(ask "$@" --database="$DATABASE" --format=json --project="$PROJECT" --quiet)" || found=""
  python3 "$INFRA/lib/firestore_indexes.py" "$kind" "$INFRA/$file" <<<"$found"
}

create_indexes() {
  step "Indexes and TTL"
  local group field arguments
  while IFS=$'\t' read -r group field arguments; do
    IFS=$'\t' read -ra arguments <<<"$arguments"
    change "create composite index on $group (${arguments[*]:1})" gcloud firestore indexes composite create \
      --collection-group="$group" "${arguments[@]}" --database="$DATABASE" --project="$PROJECT" --async --quiet
  done < <(missing_indexes composite firestore.indexes.json gcloud firestore indexes composite list)
  while IFS=$'\t' read -r group field arguments; do
    IFS=$'\t' read -ra arguments <<<"$arguments"
    change "set the indexes of $group.$field (${arguments[*]})" gcloud firestore indexes fields update "$field" \
      --collection-group="$group" "${arguments[@]}" --database="$DATABASE" --project="$PROJECT" --async --quiet
  done < <(missing_indexes fields firestore.indexes.json gcloud firestore indexes fields list)
  while IFS=$'\t' read -r group field arguments; do
    change "let $group expire by $field" gcloud firestore fields ttls update "$field" \
      --collection-group="$group" --enable-ttl --database="$DATABASE" --project="$PROJECT" --async --quiet
  done < <(missing_indexes ttl firestore.ttl.json gcloud firestore fields ttls list)
}

create_queues() {
  step "Queues"
  local priority queue rate concurrent found wanted flags
  local limits="rateLimits.maxDispatchesPerSecond,rateLimits.maxConcurrentDispatches"
  local retry="retryConfig.minBackoff,retryConfig.maxBackoff,retryConfig.maxDoublings,retryConfig.maxAttempts"
  for priority in "${PRIORITIES[@]}"; do
    queue="$(queue_of "$priority")"
    IFS=/ read -r rate concurrent <<<"$(queue_limits "$priority")"
    flags=(
      --max-dispatches-per-second="$rate" --max-concurrent-dispatches="$concurrent"
      # A dispatch that was refused comes again after 1, 2, 4 … 64 s, then each minute: an executor that was down for
      # an hour is at work a minute after it is back. It is given up after 100 attempts and a day (both: that is how
      # Cloud Tasks counts), when the sweep has long sent others.
      --min-backoff=1s --max-backoff=60s --max-doublings=6 --max-attempts=100 --max-retry-duration=86400s
      --log-sampling-ratio=0.01
    )
    wanted="$(printf '%s\t' "$rate" "$concurrent" 1s 60s 6 100 86400s)"
    if ! found="$(ask gcloud tasks queues describe "$queue" --location="$REGION" --project="$PROJECT" --quiet \
      --format="value($limits,$retry,retryConfig.maxRetryDuration)")"; then
      mark "queue.$queue"
      change "create queue $queue" gcloud tasks queues create "$queue" --location="$REGION" "${flags[@]}" \
        --project="$PROJECT" --quiet
    elif [[ "${found/.0/}" != "${wanted%$'\t'}" ]]; then # a rate is a float: 500.0
      change "update queue $queue" gcloud tasks queues update "$queue" --location="$REGION" "${flags[@]}" \
        --project="$PROJECT" --quiet
    fi
  done
}
