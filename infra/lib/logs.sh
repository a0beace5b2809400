# What Cloud Logging must not keep: the addresses of calendar feeds, because whoever knows one can read the feed.
# shellcheck shell=bash

LOG_SINK="_Default" # the sink through which Cloud Run's request log is stored in every project

# Print the filter of the requests that are not logged: all below /v1/feeds/ of the services that callers reach, however a
# calendar program writes the address. Revoking a feed stays logged; its path has the feed's ID, which opens nothing.
get_feed_filter() {
  local services
  read -ra services <<<"$NAME-(api|links) $MOUNTED_SERVICES"
  local IFS='|'
  printf '%s' "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=~\"^(${services[*]})\$\"" \
    ' AND httpRequest.requestMethod!="DELETE" AND httpRequest.requestUrl=~"/v1/feeds/."'
}

# Read the sink's exclusion of this deployment, as its filter, or "disabled". Sets EXCLUSION; fails without a sink.
read_feed_exclusion() {
  local found
  EXCLUSION=""
  found="$(query gcloud logging sinks describe "$LOG_SINK" --format="json(exclusions)")" || return 1
  EXCLUSION="$(python3 -c '
import json, sys
for each in (json.load(sys.stdin) or {}).get("exclusions", []):
    if each["name"] == sys.argv[1]:
        print("disabled" if each.get("disabled") else each["filter"])' "$NAME-feeds" <<<"$found")"
}

exclude_feeds_from_logs() {
  log_step "Request log"
  local exclusion
  if ! read_feed_exclusion && [[ "$MODE" != dry-run ]]; then
    log "There is no log sink $LOG_SINK. If another one stores the API's request log, exclude $(get_feed_filter) there."
    return 0
  fi
  exclusion="name=$NAME-feeds,description=Addresses of calendar feeds are secret,filter=$(get_feed_filter)"
  if [[ -z "$EXCLUSION" ]]; then
    mark_managed "logs.feeds"
    change "exclude the addresses of feeds from the log sink $LOG_SINK" gcloud logging sinks update "$LOG_SINK" \
      --add-exclusion="$exclusion"
  elif [[ "$EXCLUSION" != "$(get_feed_filter)" ]]; then
    require_ours "exclusion/$NAME-feeds" logs.feeds "It has the filter $EXCLUSION."
    change "update the exclusion of feeds from the log sink $LOG_SINK" gcloud logging sinks update "$LOG_SINK" \
      --update-exclusion="$exclusion,disabled=false"
  fi
}

include_feeds_in_logs() {
  if [[ "$MODE" != dry-run ]]; then
    is_managed "logs.feeds" || return 0
    read_feed_exclusion || return 0
    [[ -n "$EXCLUSION" ]] || return 0
  fi
  change "remove the exclusion of feeds from the log sink $LOG_SINK" gcloud logging sinks update "$LOG_SINK" \
    --remove-exclusions="$NAME-feeds"
}
