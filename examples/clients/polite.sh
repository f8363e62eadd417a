#!/bin/sh
# Fetches URLs politely: asks the service for a turn, fetches, and tells the service how the site answered.
# Usage: sh polite.sh URL …      POLITELY_URL and POLITELY_TOKEN say where the service is and who asks.
set -eu
service=${POLITELY_URL:-http://127.0.0.1:8787}
hold=600000 # ms, longer than any page takes; a turn is free again after it, whatever became of who asked
heard=$(mktemp)
trap 'rm -f "$heard"' EXIT

ask() { # path, JSON; the token goes through a pipe, since a command line is there for all to see
  printf %s "${POLITELY_TOKEN:+Authorization: Bearer $POLITELY_TOKEN}" |
    curl -sS --fail-with-body -H @- -H 'Content-Type: application/json' --data-binary "$2" "$service$1"
}

for url in "$@"; do
  quoted=$(printf %s "$url" | sed 's/["\\]/\\&/g')
  # Held open until it is this URL's turn. A refused one is not the end: the next one goes on.
  answer=$(ask /v1/acquire "{\"domain\":\"$quoted\",\"ttlMs\":$hold}") || { printf 'failed %s %s\n' "$url" "$answer"; continue; }
  permit=$(printf %s "$answer" | sed 's/.*"permit":"\([^"]*\)".*/\1/')
  outcome='"outcome":"server_error"'
  # -g: braces and brackets are part of the URL, which has one turn.
  if status=$(curl -sS -g --max-time 300 -o /dev/null -D "$heard" -w '%{http_code}' --url "$url"); then
    wait=$(tr -d '\r' <"$heard" | sed -n 's/^[Rr]etry-[Aa]fter: *\([[:alnum:] ,:]*\)$/\1/p' | head -n 1)
    outcome="\"status\":$status${wait:+,\"headers\":{\"retry-after\":\"$wait\"\}}"
  else
    status=failed
  fi
  # The page is there all the same when the turn is not taken back.
  answer=$(ask /v1/release "{\"permit\":\"$permit\",$outcome}") || printf 'not released %s %s\n' "$url" "$answer" >&2
  printf '%s %s\n' "$status" "$url"
done
