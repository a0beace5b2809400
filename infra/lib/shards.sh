# Shards: give every task its place in them, then remove the indexes that they replace.
# shellcheck shell=bash disable=SC2153 # the configuration sets SHARDS

# How long after the last task has its place functions may still use the indexes without shards, in seconds, with a margin.
SHARD_DELAY=180

# Raise the number of shards to SHARDS. This may be repeated at any time, and continues where it stopped.
use_shards() {
  log_step "Shards"
  require_shards
  if ((SHARDS == 1)); then
    log "SHARDS is 1: there is nothing to do."
    return
  fi
  if [[ "$MODE" == dry-run ]]; then
    change "give every task its place in $SHARDS shards" "${PYTHON:-python3}" -m cloudsched admin shards grow "$SHARDS"
    return
  fi
  ! has_outdated_functions || die "Some functions do not run with SHARDS=$SHARDS yet. Run infra/upgrade.sh first."
  wait_for_indexes
  if [[ "$(get LEDGER shards)" != "$SHARDS" ]]; then
    change "give every task its place in $SHARDS shards" run_cloudsched admin shards grow "$SHARDS"
    [[ "$MODE" == check ]] || sleep "$SHARD_DELAY"
    record "shards=$SHARDS"
  fi
  remove_replaced_indexes
}

# Remove the indexes without shards, which limit how much can be written as long as they are there.
remove_replaced_indexes() {
  remove_composite_indexes replaced-composites
  create_indexes
}
