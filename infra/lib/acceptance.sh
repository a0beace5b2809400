# The steps of accept.sh, and its report.
# shellcheck shell=bash disable=SC2034,SC2153 # variables set here are used elsewhere, and the other way round

GIVEN=""            # the configuration to try it with, if one was given
BACKUP=""           # the bucket of the backup
REPORT=""           # the report's file
STEP_NOTES=()       # what the current step has to say, for the report
STEP="" STARTED=0   # the current step, and when it began
BEGAN=0 TASKS=0     # when the run began, and how many tasks have run

# write_configuration PROJECT REGION NAME DATABASE [LINE…]: what the scripts read. Everything else is as in the given
# configuration, or in config.example.sh.
write_configuration() {
  {
    [[ -z "$GIVEN" ]] || printf 'source %q\n' "$GIVEN"
    printf 'PROJECT=%q\nREGION=%q\nFIRESTORE_LOCATION=%q\nNAME=%q\nDATABASE=%q\n' "$1" "$2" "$2" "$3" "$4"
    shift 4
    printf '%s\n' "$@"
  } >"$CONFIG"
}

# configure [LINE…]: write the configuration again, with the database in use.
configure() { write_configuration "$PROJECT" "$REGION" "$NAME" "$DATABASE" "$@"; }

# run_script SCRIPT OPTION…: run one of the scripts, as an operator would.
run_script() {
  local script="$1"
  shift
  [[ "$MODE" != dry-run ]] || set -- "$@" --dry-run
  "$INFRA/$script" --config="$CONFIG" "$@"
}

note() {
  STEP_NOTES+=("$*")
  log "  $*"
}

# begin_report FILE: write what was tried, with which versions.
begin_report() {
  REPORT="$1" BEGAN="$(date +%s)"
  [[ "$MODE" != dry-run ]] || return 0
  {
    printf "# Acceptance\n\nThe script infra/accept.sh ran this on Google Cloud on %s, in %s.\n\n" "$(date -u +%Y-%m-%d)" "$REGION"
    printf '| | |\n|---|---|\n| commit | %s |\n| runtime | %s |\n| gcloud | %s |\n| python | %s |\n| system | %s |\n' "$(get_commit)" \
      "$RUNTIME" "$(gcloud version --format="value('Google Cloud SDK')" --quiet)" "$(python3 -c 'import sys; print(sys.version.split()[0])')" \
      "$(uname -sm)"
    printf '| instances | execute %s, api %s, %s each |\n' "$EXECUTE_MAX_INSTANCES" "$API_MAX_INSTANCES" "$MEMORY"
    [[ -z "$GIVEN" ]] || printf '| own settings | %s |\n' "$(grep -oE '^[A-Z_]+=' "$GIVEN" | tr -d '=' | paste -sd' ' -)"
    printf '\n| step | result | seconds | what was seen |\n|---|---|---|---|\n'
  } >"$REPORT"
}

# run_step NAME: run a step and write its line. A step that fails ends the run, and its line says so.
run_step() {
  STEP="$1" STEP_NOTES=() STARTED="$(date +%s)"
  log_step "Acceptance: $STEP"
  guard_step
  "accept_$STEP"
  close_access
  AT_EXIT=()
  write_line passed
}

# `die` ends the shell, and so does a signal: write the step's line, and take back what the smoke test's account may.
guard_step() {
  AT_EXIT=(write_failure)
  at_exit revoke_smoke_access
}
write_failure() { write_line FAILED; }

# write_line RESULT
write_line() {
  [[ "$MODE" != dry-run ]] || return 0
  local IFS=';'
  printf '| %s | %s | %s | %s |\n' "$STEP" "$1" "$(($(date +%s) - STARTED))" "${STEP_NOTES[*]}" >>"$REPORT"
  [[ "$1" == passed ]] || {
    printf '\nThe rest was not tried. What was made is still there; this removes it:\n\n    %s\n    %s\n' \
      "infra/teardown.sh --yes --with-data --config=build/acceptance.sh" \
      "gcloud storage rm --recursive gs://$PROJECT-$NAME --project=$PROJECT --quiet"
    printf '\nPlease add the last lines that the script printed.\n'
  } >>"$REPORT"
}

end_report() {
  [[ "$MODE" != dry-run ]] || return 0
  {
    printf '\n%s tasks ran, in %s minutes in all.\n' "$TASKS" "$((($(date +%s) - BEGAN) / 60))"
    printf '\nWhat stays in the project: the APIs that were enabled, the uploaded sources in the bucket run-sources-%s-%s, backups \
of the removed databases until they expire (%s), and logs. The names of its queues stay taken for some days.\n' "$PROJECT" "$REGION" \
      "${BACKUP_RETENTION:-none}"
    printf '\nCosts appear in the billing report a day later, by service (Cloud Build, Cloud Run, Firestore, Artifact Registry, \
Secret Manager, Cloud Storage). Please add them here.\n'
  } >>"$REPORT"
}

# Let the smoke test's account call the API. Scripts that ran meanwhile have revoked that.
open_access() {
  SMOKE_ACCESS="" API_TOKEN=""
  grant_smoke_access
  guard_step
}

close_access() {
  revoke_smoke_access
  guard_step
}

# create_reminder ID SECONDS-FROM-NOW: create a task for that time.
create_reminder() {
  local at
  at="$(python3 -c 'import sys, time; print(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(sys.argv[1]))))' \
    $(($(date +%s) + $2)))"
  request_when_allowed POST "$(require SERVICE_URLS api)/v1/tasks" "{\"id\": \"$1\", \"owner\": \"$NAME-acceptance\", \
\"title\": \"Acceptance\", \"handler\": \"$SMOKE_HANDLER\", \"payload\": $SMOKE_PAYLOAD, \"schedule\": {\"at\": \"$at\"}}"
  require_success "The API did not accept the task $1"
}

# expect_one_run ID SECONDS: wait until a task has succeeded, and check that it ran once. Notes how late it was.
expect_one_run() {
  local attempt state="" late
  [[ "$MODE" != dry-run ]] || return 0
  for ((attempt = 0; attempt <= $2 / 5; attempt++)); do
    request_when_allowed GET "$(require SERVICE_URLS api)/v1/tasks/$1/executions"
    state="$(get_json_field executions.0.status <<<"$RESPONSE_BODY")"
    [[ "$state" != SUCCEEDED && "$state" != FAILED ]] || break
    sleep 5
  done
  [[ "$state" == SUCCEEDED ]] || die "Task $1 did not run within $2 seconds: ${state:-not started}. $RESPONSE_BODY"
  [[ -z "$(get_json_field executions.1.status <<<"$RESPONSE_BODY")" ]] || die "Task $1 ran more than once: $RESPONSE_BODY"
  late="$(python3 -c '
import json, sys
from datetime import datetime
run = json.load(sys.stdin)["executions"][0]
due, began = (datetime.fromisoformat(run[key].replace("Z", "+00:00")) for key in ("scheduledFor", "startedAt"))
print(f"{(began - due).total_seconds():.1f}")' <<<"$RESPONSE_BODY")"
  TASKS=$((TASKS + 1))
  note "$1 ran once, $late s after its time"
}

# ── Steps ────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Nothing of that name may be there. What else the project has is left alone.
accept_unused() {
  local found database
  ! read_ledger || die "Project $PROJECT has a secret $SECRET already. Choose another --name."
  found="$(query gcloud run services list --format="value(metadata.name)")" || found=""
  ! grep -qE "^$NAME-(api|execute|sweep|links)$" <<<"$found" || die "Project $PROJECT has Cloud Run services $NAME-…. Choose another --name."
  found="$(query gcloud firestore databases list --format="value(name.basename())")" || found=""
  for database in "$DATABASE" "$NAME-restored"; do
    ! has_line "$database" "$found" || die "Project $PROJECT has a Firestore database $database. Choose another --name."
  done
}

accept_deploy() {
  run_script deploy.sh
  run_script deploy.sh --check
  [[ "$MODE" == dry-run ]] || read_ledger
  note "image of the functions: $(get LEDGER image.execute)"
}

# What the doctor sees of the resources; the API itself is asked by the other steps.
accept_doctor() {
  local found words bad
  [[ "$MODE" != dry-run ]] || return 0
  if ! "${PYTHON:-python3}" -c 'import cloudsched' 2>/dev/null; then
    note "left out: cloudsched is not installed here"
    return
  fi
  words=(doctor --config "$CONFIG" --url "" --json)
  found="$("${PYTHON:-python3}" -m cloudsched "${words[@]}")" || true # it has made no backup yet, which it says
  note "$(python3 -c '
import json, sys
from collections import Counter
counts = Counter(each["verdict"] for each in json.load(sys.stdin)["findings"])
print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))' <<<"$found")"
  bad="$(python3 -c '
import json, sys
print(*(each["area"] + ": " + each["what"] for each in json.load(sys.stdin)["findings"] if each["verdict"] == "wrong"), sep="; ")' <<<"$found")"
  [[ -z "$bad" ]] || die "The doctor finds something wrong: $bad"
}

accept_reminder() {
  open_access
  create_reminder accept-reminder 60
  expect_one_run accept-reminder 300
}

# Nobody can move the queue's clock: the first dispatch to a task in 31 days is looked at. It must come before the end of
# the 30 days that Cloud Tasks accepts, in the queue for hops.
# Test whether a time is less than 30 days ahead: is_within_month RFC-3339-TIME
is_within_month() {
  python3 -c 'import datetime, sys; sys.exit(datetime.datetime.fromisoformat(sys.argv[1]).timestamp() >= int(sys.argv[2]))' \
    "$1" $(($(date +%s) + 30 * 86400))
}

accept_hop() {
  local at
  open_access
  create_reminder accept-hop $((31 * 86400))
  at="$(query gcloud tasks list --queue="$NAME-hops" --location="$REGION" --format="value(scheduleTime)")" || at=""
  [[ "$MODE" == dry-run || "$at" =~ ^[0-9-]+T ]] || die "Queue $NAME-hops does not have one dispatch, but: '$at'."
  note "the first hop of a task in 31 days is at $at"
  [[ "$MODE" == dry-run ]] || is_within_month "$at" ||
    die "The first hop is later than Cloud Tasks accepts: $at."
  request DELETE "$(require SERVICE_URLS api)/v1/tasks/accept-hop"
  require_success "The API did not delete the task"
}

accept_rollback() {
  configure "MEMORY=1Gi"
  run_script upgrade.sh
  run_script rollback.sh
  configure
  run_script upgrade.sh
  [[ "$MODE" == dry-run ]] || read_ledger
  note "upgraded, rolled back, and upgraded again"
}

# The task is sent before the secret is rotated, and comes due afterwards.
accept_rotation() {
  open_access
  create_reminder accept-rotation 600
  close_access
  run_script rotate-secret.sh
  open_access
  expect_one_run accept-rotation 1200
  close_access
  run_script rotate-secret.sh --compromised
  [[ "$MODE" == dry-run ]] || read_ledger
}

accept_purge() {
  open_access
  create_reminder accept-purge 120
  change "purge queue $NAME" gcloud tasks queues purge "$NAME" --location="$REGION"
  expect_one_run accept-purge 600
}

# A backup is imported into another database, and the deployment moves there. A task that waits in the backup runs there.
accept_restore() {
  local other="$DATABASE"
  BACKUP="gs://$PROJECT-$NAME"
  open_access
  create_reminder accept-restore 2400
  close_access
  change "create bucket $BACKUP" gcloud storage buckets create "$BACKUP" --location="$REGION" \
    --uniform-bucket-level-access --public-access-prevention
  change "export database $other" gcloud firestore export "$BACKUP/backup" --database="$other"
  DATABASE="$NAME-restored"
  configure
  run_script deploy.sh --step=database
  run_script deploy.sh --step=indexes
  run_script deploy.sh --step=rules
  run_script deploy.sh --step=roles
  change "import the backup into database $DATABASE" gcloud firestore import "$BACKUP/backup" --database="$DATABASE"
  run_script upgrade.sh
  [[ "$MODE" == dry-run ]] || read_ledger
  open_access
  expect_one_run accept-restore 3600
  close_access
  change "unprotect database $other" gcloud firestore databases update --database="$other" --no-delete-protection
  change "delete database $other" gcloud firestore databases delete --database="$other"
  change "delete bucket $BACKUP" gcloud storage rm --recursive "$BACKUP" --quiet
}

accept_teardown() {
  local found
  run_script teardown.sh --yes --with-data
  [[ "$MODE" != dry-run ]] || return 0
  found="$(query gcloud run services list --format="value(metadata.name)")" || found=""
  ! grep -qE "^$NAME-(api|execute|sweep|links)$" <<<"$found" || die "The teardown left ${found//$'\n'/, }."
  ! read_ledger || die "The teardown left secret $SECRET."
}
