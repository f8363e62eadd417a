#!/bin/sh
# Fetches URLs politely: asks the service for a turn, fetches, and tells the service how the site answered.
# Usage: sh polite.sh URL …      POLITELY_URL and POLITELY_TOKEN say where the service is and who asks.
set -eu
service=${POLITELY_URL:-http://127.0.0.1:8787}
heard=$(mktemp)
trap 'rm -f "$heard"' EXIT

ask() { # path, JSON
  curl -sS --fail-with-body ${POLITELY_TOKEN:+-H "Authorization: Bearer $POLITELY_TOKEN"} \
    -H 'Content-Type: application/json' --data-binary "$2" "$service$1"
}

for url in "$@"; do
  # Held open until it is this URL's turn.
  answer=$(ask /v1/acquire "{\"domain\":\"$url\"}") || { echo "$url: no turn: $answer" >&2; exit 1; }
  permit=$(printf %s "$answer" | sed 's/.*"permit":"\([^"]*\)".*/\1/')
  if status=$(curl -sS -o /dev/null -D "$heard" -w '%{http_code}' "$url"); then
    wait=$(tr -d '\r' <"$heard" | sed -n 's/^[Rr]etry-[Aa]fter: *\([[:alnum:] ,:]*\)$/\1/p')
    ask /v1/release "{\"permit\":\"$permit\",\"status\":$status${wait:+,\"headers\":{\"retry-after\":\"$wait\"\}}}"
  else
    status=failed
    ask /v1/release "{\"permit\":\"$permit\",\"outcome\":\"server_error\"}"
  fi
  echo "$status $url"
done
