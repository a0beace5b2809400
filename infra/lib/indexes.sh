# Firestore's indexes and TTL policies: create what is missing, and wait until the indexes are ready.
# shellcheck shell=bash

# Firestore answers simultaneous changes of indexes with 409 (contention). They are therefore requested one at a time, and
# a request that met contention is repeated after these seconds, eight minutes in all.
CONTENTION_DELAYS=(5 10 20 40 60 60 60 60 60 60 60)
CONTENTION="aborted|contention|underlying data changed|resource_exhausted|unavailable|deadline_exceeded"

# Seconds between two looks at the indexes that are being built, about an hour in all. Building takes some minutes even
# in an empty database, and longer the more documents there are.
BUILD_DELAYS=(5 10 15 30)
for _ in {1..60}; do BUILD_DELAYS+=(60); done

# Request every index and TTL policy that the database lacks. A run that was interrupted is resumed by the next one: what
# exists, or is being built, is not requested again.
#
# While outdated functions serve, no index that they may need is dropped: that is left to the next run of deploy.sh after
# the upgrade.
create_indexes() {
  log_step "Indexes and TTL"
  require_shards
  local group field arguments overrides=overrides is_outdated=""
  ! has_outdated_functions || overrides=added-overrides is_outdated=yes
  while IFS=$'\t' read -r group field arguments; do
    IFS=$'\t' read -ra arguments <<<"$arguments"
    change "create composite index on $group (${arguments[*]:1})" retry_contention \
      gcloud firestore indexes composite create --collection-group="$group" "${arguments[@]}" \
      --database="$DATABASE" --async
  done < <(compare_indexes composites)
  set_single_field_indexes "$overrides"
  while IFS=$'\t' read -r group field arguments; do
    change "enable TTL on $group.$field" retry_contention \
      gcloud firestore fields ttls update "$field" --collection-group="$group" --enable-ttl \
      --database="$DATABASE" --async
  done < <(compare_indexes ttl-policies)
  [[ -n "$is_outdated" ]] || remove_retired_indexes
}

# set_single_field_indexes KIND: give fields the indexes that a comparison of this kind prints. "The only valid special field
# is `*`, which represents any field" of a collection group (google.firestore.admin.v1.Field, `name`).
set_single_field_indexes() {
  local group field arguments
  while IFS=$'\t' read -r group field arguments; do
    IFS=$'\t' read -ra arguments <<<"$arguments"
    change "set the indexes of $group.$field (${arguments[*]})" retry_contention \
      gcloud firestore indexes fields update "$field" --collection-group="$group" "${arguments[@]}" \
      --database="$DATABASE" --async
  done < <(compare_indexes "$1")
}

# Remove the indexes that only earlier versions needed. Others that the file does not have are somebody else's, and stay.
remove_retired_indexes() {
  local retired
  retired="$(compare_indexes retired-composites && compare_indexes retired-overrides)"
  [[ -n "$retired" ]] || return 0
  record "retired=yes" # before the first one is gone: rollback.sh has to know also if this run is interrupted
  remove_composite_indexes retired-composites
  set_single_field_indexes retired-overrides
}

# remove_composite_indexes KIND: delete the composite indexes that a comparison of this kind prints.
remove_composite_indexes() {
  local group fields name
  while IFS=$'\t' read -r group fields name; do
    change "delete the composite index on $group ($fields)" retry_contention \
      gcloud firestore indexes composite delete "$name" --database="$DATABASE"
  done < <(compare_indexes "$1")
}

# Wait until every index is ready, and report progress. A check reports the indexes that exist but are not ready; a dry
# run only prints the commands.
wait_for_indexes() {
  local pending="" previous="" delay group field state
  for delay in "${BUILD_DELAYS[@]}" ""; do
    pending="$(compare_indexes unready-composites && compare_indexes unready-overrides)"
    [[ -n "$pending" && "$MODE" != dry-run ]] || return 0
    while IFS=$'\t' read -r group field state; do
      [[ "$state" != NEEDS_REPAIR ]] || die "Firestore could not build the index on $group ($field). Find the reason in \
the database's operations (gcloud firestore operations list), delete the index, and run this script again."
      [[ "$MODE" != check || "$state" == MISSING ]] || report_difference "index on $group ($field) is not ready: $state"
    done <<<"$pending"
    [[ "$MODE" != check ]] || return 0
    [[ -n "$delay" ]] || break
    [[ "$pending" == "$previous" ]] || log "waiting for $(($(wc -l <<<"$pending"))) indexes to be built"
    previous="$pending"
    sleep "$delay"
  done
  die "Some indexes are still being built after an hour: $(cut -f 1,2 <<<"$pending" | tr '\t\n' '. '). Functions that need \
them must not serve yet. Run this script again later; it continues from here."
}

# compare_indexes KIND: compare the files with the database, as `lib/firestore_indexes.py` does.
compare_indexes() {
  local file=firestore.indexes.json list=(indexes fields list) found
  case "$1" in
    *composites) list=(indexes composite list) ;;
    ttl-policies) file=firestore.ttl.json list=(fields ttls list) ;;
  esac
  found="$(query gcloud firestore "${list[@]}" --database="$DATABASE" --format=json)" ||
    found=""
  SHARDS="$(get_index_kind)" CLIENTS="$FIREBASE_PROJECT" python3 "$INFRA/lib/firestore_indexes.py" "$1" "$INFRA/$file" <<<"$found"
}

# Print which of the file's indexes the database has: with `one` shard, while it is `growing`, or with `many`.
get_index_kind() {
  if [[ -n "$(get LEDGER shards)" ]]; then
    printf many
  elif ((SHARDS > 1)); then
    printf growing
  else
    printf one
  fi
}

# Run a command that changes an index, and repeat it as long as it meets contention. An index that exists already was
# created by a request whose response was lost.
retry_contention() {
  local delay errors
  for delay in "${CONTENTION_DELAYS[@]}" ""; do
    if errors="$("$@" 2>&1 >/dev/null)" || [[ "$(lower "$errors")" == *already_exists* ]]; then
      return
    fi
    [[ -n "$delay" && "$(lower "$errors")" =~ $CONTENTION ]] || break
    log "  … Firestore is busy with other indexes; retrying in $delay s"
    sleep "$delay"
  done
  die "$errors"
}
