# What of the stored work would fail with the code here, before anything is changed.
# shellcheck shell=bash disable=SC2153 # the configuration sets SMOKE_ACCOUNT and FUNCTIONS_DIR

# compare_stored_work IS_MOVING: end the script if a deployed task or run would fail with the handlers of FUNCTIONS_DIR. The
# token is in no argument.
compare_stored_work() {
  log_step "Check"
  local api status=0
  api="$(get_api_address)"
  local command=("${PYTHON:-python3}" -m cloudsched check --url "$api" --handlers "$FUNCTIONS_DIR/handlers.py")
  if [[ -n "$1" ]]; then
    log "The tasks of database $DATABASE are not compared with the code: the serving API shows those of the old one."
    return
  fi
  if [[ "$MODE" == dry-run ]]; then
    quote_command "${command[@]}"
    return
  fi
  "${command[0]}" -c 'import cloudsched' 2>/dev/null ||
    die "The check needs cloudsched and your handlers' requirements here: pip install them, and set PYTHON to the \
interpreter that has them. Nothing was changed. --unchecked leaves the check out."
  if ! is_smoke_account_accepted; then
    log "The serving API does not accept $SMOKE_ACCOUNT, so its tasks could not be compared with the code."
    return
  fi
  (
    unset CLOUDSCHED_KEY
    export CLOUDSCHED_TOKEN="$API_TOKEN" CLOUDSCHED_PLATFORM_TOKEN="$API_TOKEN"
    "${command[@]}" >&2
  ) || status=$?
  case "$status" in
    0) ;;
    1)
      die "What would fail is above. Nothing was changed. Change the code or the tasks, or upgrade all the same with \
--unchecked."
      ;;
    *)
      die "The deployed tasks could not be compared with the code, for the reason above. Nothing was changed. --unchecked \
leaves the check out."
      ;;
  esac
}
