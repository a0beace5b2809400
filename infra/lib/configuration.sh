# Load and validate the configuration, and derive resource names from it.
# shellcheck shell=bash disable=SC2034,SC2153 # variables set here are used elsewhere, and the other way round

# Maps: ACCOUNT_EMAILS  of the accounts that the scripts create
#       SERVICE_URLS    of the functions, and as candidate.FUNCTION of the revisions with that tag
#       QUEUE_NAMES     in Cloud Tasks, by kind of queue
#       QUEUE_LIMITS    DISPATCHES-PER-SECOND/CONCURRENT-DISPATCHES, by kind of queue

# read_resources PROGRAM ARGUMENT…: print what a line of Python makes of infra/resources.json.
read_resources() {
  python3 -c 'import json, sys; table = json.load(open(sys.argv[1], encoding="utf-8")); exec(sys.argv[2])' \
    "$INFRA/resources.json" "$@"
}

# Load the configuration and reject invalid values before anything is created.
load_configuration() {
  local file="$1" account
  [[ -f "$file" ]] || die "$file does not exist. Copy infra/config.example.sh to it and set PROJECT."
  # shellcheck source=config.example.sh
  source "$INFRA/config.example.sh"
  # shellcheck source=config.example.sh
  source "$file" || die "The last command of $file failed."
  require_match PROJECT '[a-z][a-z0-9-]{4,28}[a-z0-9]' "set it to your project's ID in $file"
  require_match NAME '[a-z][a-z0-9-]{0,18}[a-z0-9]' "it must be 2 to 20 lowercase letters, digits and hyphens"
  require_match BACKUP_RETENTION '([1-9]|[1-8][0-9]|9[0-8])d|' "it must be 1d to 98d, or empty"
  require_match FIRESTORE_LOCATION '([a-z]+-[a-z]+[0-9]+|[a-z]+[0-9])?' "it must be a region, or nam5 or eur3"
  require_match REGION '(africa|asia|australia|europe|me|(north|south)america|us)-(central|north|south|(north|south)?(east|west))[1-9][0-9]?' \
    "it must be a region, such as europe-west1"
  # A database that the configuration names is where it is. One of its own is made where the functions are, unless the
  # configuration says another place.
  [[ -n "$DATABASE" ]] || FIRESTORE_LOCATION="${FIRESTORE_LOCATION:-$REGION}"
  require_match RUNTIME 'python3(1[1-9]|[2-9][0-9])' "it must be one of Cloud Run's Python runtimes, python311 or newer"
  require_match MONITORING 'on|off' "it must be on or off"
  require_match NOTIFICATION_CHANNELS '(projects/[a-z0-9:.-]+/notificationChannels/[0-9]+( |$))*' \
    "it must be names such as projects/P/notificationChannels/1, separated by spaces"
  require_match ALERT_DOLLARS_A_DAY '[1-9][0-9]{0,5}' "it must be a whole number of dollars"
  require_match MOUNTED_SERVICES '([a-z]([a-z0-9-]{0,61}[a-z0-9])?( |$))*' \
    "it must be names of Cloud Run services, separated by spaces"
  require_match BUDGET_A_MONTH '([1-9][0-9]{0,8})?' "it must be a whole number in the billing account's currency, or empty"
  require_match RULES 'deploy|keep|replace' "it must be deploy, keep or replace"
  require_match COLLECTION_PREFIX '([a-z][a-z0-9_]{0,38}_)?' "it must be lowercase letters, digits and _, and end with _"
  [[ -z "$COLLECTION_PREFIX" || "$RULES" != replace ]] || die "RULES=replace would take the rules of your app from its \
database. With COLLECTION_PREFIX, its rules stay, and deploy.sh prints what to add to them."
  export COLLECTION_PREFIX # lib/firestore_indexes.py reads it
  local memory="${MEMORY%[MG]*}"
  require_match MEMORY '[1-9][0-9]{0,5}[MG]i?' "it must be like 512Mi"
  [[ "$MEMORY" == *M* ]] || memory=$((memory * 1024))
  ((memory >= 128 && memory <= 4096)) || [[ "$memory" -ge 128 && "${RUN_FLAGS[*]}" == *--cpu* ]] ||
    die "MEMORY is $MEMORY; Cloud Run accepts 128Mi to 4Gi, and more only with more CPUs (RUN_FLAGS)."
  require_match API_CONCURRENCY '[1-9][0-9]{0,2}|1000' "Cloud Run accepts 1 to 1000"
  require_match EXECUTE_CONCURRENCY '[1-9][0-9]{0,2}|1000' "Cloud Run accepts 1 to 1000"
  ((EXECUTE_TIMEOUT >= 15 && EXECUTE_TIMEOUT <= 1800)) ||
    die "EXECUTE_TIMEOUT is $EXECUTE_TIMEOUT; Cloud Tasks accepts 15 to 1800 seconds."
  ((SWEEP_TIMEOUT >= 15 && SWEEP_TIMEOUT <= 1800)) ||
    die "SWEEP_TIMEOUT is $SWEEP_TIMEOUT; Cloud Scheduler accepts 15 to 1800 seconds."
  for account in api executor invoker builder links smoke; do
    put ACCOUNT_EMAILS "$account" "$NAME-$account@$PROJECT.iam.gserviceaccount.com"
  done
  validate_access
  validate_settings
  validate_secrets
  require_known_names "$file"
  validate_platform
  validate_queues
  require_match SHARDS '[1-9][0-9]{0,2}|1000' "it must be a whole number from 1 to 1000"
  if [[ "$PUBLIC_LINKS" == yes ]]; then
    FUNCTIONS+=(links)
    SENDERS_FIRST=(links "${SENDERS_FIRST[@]}")
    STORE_ACCOUNTS+=(links)
  fi
  FUNCTIONS_DIR="${FUNCTIONS_DIR:-$INFRA/../functions}"
  SECRET="$NAME-dispatch"
}

# Reject names that nothing reads, and secrets among SETTINGS. What a file sets is seen in a shell of its own.
require_known_names() {
  local wrong
  # shellcheck disable=SC2016 # that shell expands it
  wrong="$({
    "$BASH" --norc -c '
      before=" $(compgen -v | tr "\n" " ") "
      source "$1" >/dev/null
      for name in $(compgen -v); do
        [[ "$before" == *" $name "* ]] || printf "%s\n" "$name"
      done
      printf "=\n"' bash "$1"
    ((${#SETTINGS[@]} == 0)) || printf '%s\n' "${SETTINGS[@]}"
  } | python3 "$INFRA/lib/configuration.py" "$INFRA/config.example.sh" "$PROJECT" 2>&1)" || die "$wrong"
}

# require_match VARIABLE PATTERN REQUIREMENT: reject a value that the whole pattern does not match.
require_match() {
  [[ "${!1}" =~ ^($2)$ ]] || die "$1 is '${!1}'; $3."
}

# Reject access settings that the API would not accept or that would admit nobody.
validate_access() {
  local account_pattern='[^@=~[:space:]]+@[a-z0-9.-]+\.gserviceaccount\.com'
  require_match API_ACCESS 'private|public' "it must be private or public"
  require_match PUBLIC_LINKS 'yes|no' "it must be yes or no"
  require_match FIREBASE_PROJECT '([a-z][a-z0-9-]{4,28}[a-z0-9])?' "it must be a project's ID"
  require_match SMOKE_ACCOUNT "($account_pattern)?" "it must be a service account's email address"
  validate_service_accounts
  require_match API_KEYS_SECRET '[A-Za-z0-9_-]{0,255}' "it must be a secret's name"
  require_match API_ADDRESSES '(https://[^~[:space:]]+( |$))*' "it must be https:// URLs separated by spaces"
  require_match CORS_ORIGINS '\*|(https?://[^~/[:space:]]+( |$))*' \
    "it must be * or origins such as https://app.example (without a path), separated by spaces"
  require_match MAX_ACTIVE_TASKS '([1-9][0-9]*|unlimited)?' "it must be a positive number, unlimited or empty"
  require_match MAX_CREATIONS_A_MINUTE '([1-9][0-9]*)?' "it must be a positive number or empty"
  require_match MAX_RUN_CREATIONS_A_MINUTE '([1-9][0-9]*|unlimited)?' \
    "it must be a positive number, unlimited or empty"
  require_match BUCKET '([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])?' "it must be a bucket's name, without gs://"
  [[ "$API_ACCESS" == private || -n "$FIREBASE_PROJECT$API_KEYS_SECRET${SERVICE_ACCOUNTS[*]}" ]] ||
    die "API_ACCESS is public, but no caller would be accepted: set FIREBASE_PROJECT, SERVICE_ACCOUNTS or \
API_KEYS_SECRET."
}

# Reject roles that the API does not know and accounts with two roles. Set ACCOUNTS to the accounts that the scripts
# create, and API_ACCOUNTS to all accounts that may call the API, with their roles.
validate_service_accounts() {
  local entry email queue='[A-Za-z0-9_-]{1,64}'
  local own_role="" emails=" "
  for entry in "${SERVICE_ACCOUNTS[@]}"; do
    [[ "$entry" =~ ^$account_pattern=(user|reader|viewer|admin|delegate|worker(@$queue(\+$queue)*)?)$ ]] ||
      die "SERVICE_ACCOUNTS contains '$entry'; each entry must be a service account's EMAIL=ROLE, with the role viewer, \
admin, user, reader, delegate, worker or worker@QUEUE+QUEUE."
    email="${entry%%=*}"
    [[ "$emails" != *" $email "* ]] || die "SERVICE_ACCOUNTS lists $email more than once. Give it one role."
    emails+="$email "
  done
  ACCOUNTS=(api executor invoker builder)
  [[ "$PUBLIC_LINKS" != yes ]] || ACCOUNTS+=(links)
  [[ -n "$SMOKE_ACCOUNT" ]] || ACCOUNTS+=(smoke)
  SMOKE_ACCOUNT="${SMOKE_ACCOUNT:-$(require ACCOUNT_EMAILS smoke)}"
  API_ACCOUNTS=("${SERVICE_ACCOUNTS[@]}")
  for entry in "${SERVICE_ACCOUNTS[@]}"; do
    [[ "${entry%%=*}" != "$SMOKE_ACCOUNT" ]] || own_role="${entry#*=}"
  done
  case "$own_role" in
    admin) ;;
    "") API_ACCOUNTS+=("$SMOKE_ACCOUNT=admin") ;;
    *) die "SMOKE_ACCOUNT is also in SERVICE_ACCOUNTS, as $own_role. The smoke test needs the role admin." ;;
  esac
}

# The variables that the scripts set themselves, from other values of the configuration.
DERIVED="CLOUDSCHED_(SECRET|PREVIOUS_SECRET|FIREBASE_PROJECT|SERVICE_ACCOUNTS|AUDIENCES|TRUST_CLOUD_RUN|API_KEYS|SWEEPER)"
DERIVED+="|CLOUDSCHED_(CORS_ORIGINS|BUCKET|QUEUES_PER_PRIORITY|SHARDS|LOCATION|QUEUE|QUEUE_ADMIN|DATABASE|EXECUTOR_URL|INVOKER|MAX_[A-Z_]*)"
DERIVED+="|CLOUDSCHED_COLLECTION_PREFIX|CLOUDSCHED_TIME_LIMIT_SECONDS|GOOGLE_CLOUD_PROJECT|FIREBASE_AUTH_EMULATOR_HOST|FUNCTION_TARGET|THREADS|PORT|K_[A-Z]*"

# require_own_variable LIST NAME: reject a variable that the scripts derive.
require_own_variable() {
  [[ ! "$2" =~ ^($DERIVED)$ ]] || die "$1 contains $2, which is derived from other values of the configuration; see \
docs/reference/settings.md."
}

validate_settings() {
  local setting
  for setting in "${SETTINGS[@]}"; do
    [[ "$setting" =~ ^[A-Z][A-Z0-9_]*=[^~]*$ ]] ||
      die "SETTINGS contains '$setting'; each entry must be NAME=value, without a ~."
    require_own_variable SETTINGS "${setting%%=*}"
  done
}

# Reject secrets without a version, variables that have two values in a function, and a mail server without a sender, with
# which no function would start.
validate_secrets() {
  local entry variable function seen=" " names=" " places="(@$FUNCTION(\+$FUNCTION)*)?"
  for entry in "${SETTINGS[@]}"; do names+="${entry%%=*} "; done
  for entry in "${SECRETS[@]}"; do
    [[ "$entry" =~ ^([A-Z][A-Z0-9_]*)$places=[A-Za-z0-9_-]{1,255}:[1-9][0-9]{0,9}$ ]] ||
      die "SECRETS contains '$entry'; each entry must be VARIABLE=SECRET:VERSION, with the number of a version, or \
VARIABLE@FUNCTION+FUNCTION=SECRET:VERSION for some of execute, sweep, api and links."
    variable="${BASH_REMATCH[1]}"
    require_own_variable SECRETS "$variable"
    [[ "$names" != *" $variable "* ]] || die "$variable is in SETTINGS and in SECRETS. Write it once."
    for function in $(list_places "$entry"); do
      [[ "$function" != links || "$PUBLIC_LINKS" == yes ]] || die "SECRETS names links for $variable, but PUBLIC_LINKS is no."
      [[ "$seen" != *" $variable@$function "* ]] || die "SECRETS gives $variable two values in $function."
      seen+="$variable@$function "
    done
  done
  [[ " ${SECRETS[*]}" != *" CLOUDSCHED_SMTP_URL"[@=]* || " ${SETTINGS[*]}" == *" CLOUDSCHED_MAIL_FROM="* ]] ||
    die "SECRETS names a mail server, and SETTINGS no sender: add CLOUDSCHED_MAIL_FROM=ada@example.com."
}

FUNCTION="(execute|sweep|api|links)"

# list_places ENTRY: print the functions of an entry of SECRETS. Without any it is for all but `links`, which signs no
# dispatch and sends no mail; the address of a dead-man's switch is for the sweep.
list_places() {
  local variable="${1%%=*}"
  case "$variable" in
    *@*) printf '%s' "${variable#*@}" | tr + ' ' ;;
    CLOUDSCHED_SWEEP_PING) printf sweep ;;
    *) printf 'execute sweep api' ;;
  esac
}

# Print the entries of SECRETS that a function mounts, as VARIABLE=SECRET:VERSION, each on a line.
list_secrets() {
  local entry
  for entry in "${SECRETS[@]}"; do
    [[ " $(list_places "$entry") " != *" $1 "* ]] || printf '%s\n' "${entry%%[@=]*}=${entry#*=}"
  done
}

# list_labels [LABEL]: print the labels of what these scripts make, and one more.
list_labels() {
  local IFS=,
  printf '%s' "managed-by=cloudsched,deployment=$NAME${LABELS[*]:+,${LABELS[*]}}${1:+,$1}"
}

# Reject what Google would refuse of the places, labels and flags that an organisation demands, and flags of `gcloud run
# deploy` that have a setting, on which more depends than that flag.
validate_platform() {
  local entry label='[a-z][a-z0-9_-]{0,62}=[a-z0-9_-]{0,63}' flag
  require_match API_INGRESS 'all|internal|internal-and-cloud-load-balancing' \
    "it must be all, internal or internal-and-cloud-load-balancing"
  require_match SECRET_LOCATIONS '([a-z]+-[a-z]+[0-9]+( |$))*' "it must be regions separated by spaces"
  for entry in "${LABELS[@]}"; do
    [[ "$entry" =~ ^$label$ && ! "$entry" =~ ^(managed-by|deployment|commit)= ]] || die "LABELS contains '$entry'; each \
entry must be key=value in lowercase letters, digits, - and _. managed-by, deployment and commit are the scripts' own."
  done
  for entry in "${RUN_FLAGS[@]}"; do
    [[ "$entry" =~ ^($FUNCTION(\+$FUNCTION)*\ )?--([a-z][a-z0-9-]*)(=.*)?$ ]] ||
      die "RUN_FLAGS contains '$entry'; each entry must be --flag or --flag=value, after the functions that it is for, if \
it is not for all: 'execute+sweep --vpc-egress=all-traffic'."
    [[ "+${entry%% --*}+" != *+links+* || "$PUBLIC_LINKS" == yes ]] || die "RUN_FLAGS contains '$entry', but PUBLIC_LINKS is no."
    flag="${entry#*--}" flag="${flag%%=*}"
    case "$flag" in
      *env-vars*) die "RUN_FLAGS contains --$flag. Write it in SETTINGS." ;;
      *secrets) die "RUN_FLAGS contains --$flag. Write it in SECRETS." ;;
      *labels) die "RUN_FLAGS contains --$flag. Write it in LABELS." ;;
      ingress) die "RUN_FLAGS contains --$flag. Write it in API_INGRESS." ;;
      memory | concurrency | timeout | min | max | min-instances | max-instances | scaling | base-image | project | region)
        die "RUN_FLAGS contains --$flag, which has a setting of its own; see docs/reference/settings.md."
        ;;
      allow-unauthenticated | no-allow-unauthenticated | service-account | *invoker-iam-check | traffic | no-traffic | tag | \
        source | image | build-service-account | function | command | args | port | async | quiet | format | container | \
        default-url | no-default-url | revision-suffix | flags-file | account | impersonate-service-account)
        die "RUN_FLAGS contains --$flag, on which the scripts rely."
        ;;
    esac
  done
  for entry in "${ADOPT[@]}"; do
    [[ "$entry" =~ ^(account|queue|function|job|repository|exclusion)/[^/[:space:]]+$ ]] ||
      die "ADOPT contains '$entry'; each entry must be KIND/NAME, such as queue/cloudsched-high or 'queue/*', with one of \
the kinds account, queue, function, job, repository and exclusion."
  done
}

# Reject limits that Cloud Tasks refuses, or that the executor could not keep up with.
validate_queues() {
  require_match QUEUE_ADMIN 'on|off' "it must be on or off"
  require_match QUEUES_PER_PRIORITY '[1-9][0-9]?|1[0-9][0-9]|200' "it must be a whole number from 1 to 200"
  add_queues
  local priority limits sum=0 capacity=$((EXECUTE_CONCURRENCY * EXECUTE_MAX_INSTANCES))
  for priority in "${QUEUES[@]}"; do
    limits="$(get QUEUE_LIMITS "$priority")"
    [[ "$limits" =~ ^([0-9]{1,3})/([0-9]{1,4})$ ]] ||
      die "QUEUE_$(upper "$priority") is '$limits'; it must be <dispatches per second>/<concurrent dispatches>."
    ((BASH_REMATCH[1] >= 1 && BASH_REMATCH[1] <= 500)) ||
      die "QUEUE_$(upper "$priority"): Cloud Tasks accepts 1 to 500 dispatches per second."
    ((BASH_REMATCH[2] >= 1 && BASH_REMATCH[2] <= 5000)) ||
      die "QUEUE_$(upper "$priority"): Cloud Tasks accepts 1 to 5000 concurrent dispatches."
    sum=$((sum + BASH_REMATCH[2]))
  done
  ((sum <= capacity)) ||
    die "The queues send up to $sum concurrent dispatches, but EXECUTE_CONCURRENCY × EXECUTE_MAX_INSTANCES allows only \
$capacity. Cloud Run would answer 429, and Cloud Tasks would slow the queues down."
}

# The kinds of queues, as infra/resources.json has them. Each channel of deliveries has the rate that its provider allows.
# shellcheck disable=SC2207 # they are words of lowercase letters
PRIORITIES=($(read_resources 'print(*table["priorities"])'))
# shellcheck disable=SC2207
QUEUES=($(read_resources 'print(*table["queues"])'))
# shellcheck disable=SC2207
CHANNELS=($(read_resources 'print(*(each for each in table["queues"] if each not in {*table["priorities"], "hops"}))'))
CHANNEL_LIMITS="5/5" # of channels that the configuration does not mention
# `links` is added to these if PUBLIC_LINKS is "yes".
FUNCTIONS=(execute sweep api) # in deployment order: the function that receives dispatches before those that send them
SENDERS_FIRST=(api sweep execute) # the other way round, to go back or to remove them
STORE_ACCOUNTS=(api executor) # the accounts that use the database

# Add to QUEUES the further ones of each priority: critical-q2, critical-q3 and so on. Set QUEUE_NAMES and QUEUE_LIMITS for
# all of them; the names must match the Cloud Tasks adapter. Set SCALE_SETTINGS to the variables by which the functions
# know of them, of shards, and of the collections' prefix.
add_queues() {
  local priority number queue limits
  SCALE_SETTINGS=()
  ((QUEUES_PER_PRIORITY == 1)) || SCALE_SETTINGS+=("CLOUDSCHED_QUEUES_PER_PRIORITY=$QUEUES_PER_PRIORITY")
  [[ "$SHARDS" == 1 ]] || SCALE_SETTINGS+=("CLOUDSCHED_SHARDS=$SHARDS")
  [[ -z "$COLLECTION_PREFIX" ]] || SCALE_SETTINGS+=("CLOUDSCHED_COLLECTION_PREFIX=$COLLECTION_PREFIX")
  for priority in "${PRIORITIES[@]}"; do
    for ((number = 2; number <= QUEUES_PER_PRIORITY; number++)); do
      QUEUES+=("$priority-q$number")
    done
  done
  for queue in "${QUEUES[@]}"; do
    put QUEUE_NAMES "$queue" "$NAME-$queue"
    [[ "$queue" != normal && "$queue" != normal-q* ]] || put QUEUE_NAMES "$queue" "$NAME${queue#normal}"
    limits="QUEUE_$(upper "$queue")" limits="${limits%-Q*}"
    put QUEUE_LIMITS "$queue" "${!limits-}"
  done
  for queue in "${CHANNELS[@]}"; do
    [[ -n "$(get QUEUE_LIMITS "$queue")" ]] || put QUEUE_LIMITS "$queue" "$CHANNEL_LIMITS"
  done
}

# Set BACKEND_SETTINGS to the variables by which a program finds the tasks and the queues: the functions, and your own.
set_backend_settings() {
  BACKEND_SETTINGS=(
    "GOOGLE_CLOUD_PROJECT=$PROJECT"
    "CLOUDSCHED_LOCATION=$REGION"
    "CLOUDSCHED_QUEUE=$NAME"
    "${SCALE_SETTINGS[@]}"
    "CLOUDSCHED_DATABASE=$DATABASE"
    "CLOUDSCHED_EXECUTOR_URL=$(require SERVICE_URLS execute)"
    "CLOUDSCHED_INVOKER=$(require ACCOUNT_EMAILS invoker)"
  )
}

# Print the variables with which your own backend creates tasks, and say what its account needs.
print_settings() {
  local roles="gcloud projects add-iam-policy-binding $PROJECT --condition=None --member=serviceAccount:ACCOUNT --role"
  set_backend_settings
  printf '%s\n' CLOUDSCHED_STORE=firestore "${BACKEND_SETTINGS[@]}"
  log "
Give your backend these variables, and CLOUDSCHED_SECRET from version $(get_secret_version) of the secret $SECRET. Its service
account needs these roles; put its email in place of ACCOUNT:
  $roles=roles/datastore.user
  $roles=roles/cloudtasks.enqueuer
  gcloud secrets add-iam-policy-binding $SECRET --project=$PROJECT --member=serviceAccount:ACCOUNT \
--role=roles/secretmanager.secretAccessor
  gcloud iam service-accounts add-iam-policy-binding $(require ACCOUNT_EMAILS invoker) --project=$PROJECT \
--member=serviceAccount:ACCOUNT --role=roles/iam.serviceAccountUser"
}

# Print the version of the signing secret that new revisions use.
get_secret_version() {
  local version
  version="$(get LEDGER secret.current)"
  printf '%s' "${version:-1}"
}

# Reject fewer shards than every task has its place in: nobody would look for those in the others.
require_shards() {
  local placed
  placed="$(get LEDGER shards)"
  ((SHARDS >= ${placed:-1})) || die "SHARDS is $SHARDS, but the tasks are in $placed shards already. Their number cannot be \
lowered."
}

# Set PROJECT_NUMBER, and SERVICE_URLS: Cloud Run derives the URL from a service's name, even before the service exists.
find_project_number() {
  local function host missing asking=(gcloud projects describe "$PROJECT" --format="value(projectNumber)" --quiet)
  local api=cloudresourcemanager.googleapis.com
  missing="Project $PROJECT does not exist, or you have no access to it (gcloud auth login). A service account needs \
the project's $api (gcloud services enable $api --project=$PROJECT)."
  PROJECT_NUMBER="$(query "${asking[@]}")" || case "$MODE" in
    dry-run) PROJECT_NUMBER="PROJECT_NUMBER" ;;
    apply)
      # gcloud asks for a user through its own project, and for a service account, such as CI's, through that account's.
      change "enable $api" gcloud services enable "$api" || die "$missing"
      ARE_SERVICES_ON=yes
      PROJECT_NUMBER="$(query "${asking[@]}")" || die "$missing"
      ARE_SERVICES_ON=""
      ;;
    *) die "$missing" ;;
  esac
  for function in execute sweep api links; do
    host="$NAME-$function-$PROJECT_NUMBER.$REGION.run.app"
    put SERVICE_URLS "$function" "https://$host"
    put SERVICE_URLS "candidate.$function" "https://candidate---$host"
  done
}
