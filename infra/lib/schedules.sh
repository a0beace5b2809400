# The schedules that the handlers declare with @app.scheduled.
# shellcheck shell=bash disable=SC2153 # the configuration sets SETTINGS

# Test whether the code declares schedules, or did when they were last applied: what is gone from it has to be paused.
has_schedules() {
  python3 "$INFRA/build_source.py" --declares-schedules "$FUNCTIONS_DIR" ||
    [[ "$(get LEDGER schedules)" == yes ]]
}

# run_cloudsched ARGUMENT…: run `cloudsched` with the settings of the deployed functions, as yourself. The secret is in no
# argument.
run_cloudsched() {
  local version secret
  version="$(get LEDGER secret.current)"
  secret="$(query gcloud secrets versions access "${version:-1}" --secret="$SECRET")"
  (
    set_backend_settings
    export CLOUDSCHED_STORE=firestore CLOUDSCHED_SECRET="$secret" "${BACKEND_SETTINGS[@]}"
    ((${#SETTINGS[@]} == 0)) || export "${SETTINGS[@]}"
    "${PYTHON:-python3}" -m cloudsched "$@"
  )
}

# Bring the stored tasks in line with the schedules that the deployed code declares.
apply_schedules() {
  has_schedules || return 0
  log_step "Schedules"
  local line output status=0 options=()
  if [[ "$MODE" == dry-run ]]; then
    change "apply the schedules" "${PYTHON:-python3}" -m cloudsched apply --handlers "$FUNCTIONS_DIR/handlers.py"
    return
  fi
  if has_outdated_functions; then
    report_difference "the schedules of handlers that are not deployed yet; after infra/upgrade.sh, run infra/deploy.sh"
    return
  fi
  "${PYTHON:-python3}" -c 'import cloudsched' 2>/dev/null ||
    die "The schedules need cloudsched and your handlers' requirements here: pip install them, and set PYTHON to the \
interpreter that has them. Then run infra/deploy.sh --step=apply."
  if [[ "$MODE" == check ]]; then
    options=(--check)
  else
    [[ "$(get LEDGER schedules)" == yes ]] || record "schedules=yes"
  fi
  output="$(run_cloudsched apply --handlers "$FUNCTIONS_DIR/handlers.py" "${options[@]}")" || status=$?
  ((status == 0)) || [[ "$MODE" == check && "$status" == 1 ]] ||
    die "The schedules could not be applied; the error is above. It needs your own credentials, from: gcloud auth \
application-default login."
  while IFS= read -r line; do
    [[ "$line" == [+~-]\ * ]] || continue
    if [[ "$MODE" == check ]]; then
      report_difference "schedule: $line"
    else
      CHANGES=$((CHANGES + 1))
      log "$line"
    fi
  done <<<"$output"
}
