#!/bin/sh
# Tests the source type @NAME@ against the contract. Then starts a relay with it, sends values to that from another weir, and checks
# what the relay writes.
set -eu
weir=${WEIR:-weir}
folder=$(mktemp -d)
relay=
finish() {
    [ -z "$relay" ] || kill "$relay" 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT

# Waits until a command succeeds, for $WAIT seconds (60) at most; fails when the relay has ended.
wait_for() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        if [ "$tries" -gt "$((${WAIT:-60} * 10))" ] || ! kill -0 "$relay" 2>/dev/null; then
            echo "failed: $*"
            exit 1
        fi
        sleep 0.1
    done
}
has_lines() { [ -e "$folder/values" ] && [ "$(wc -l <"$folder/values")" -ge "$1" ]; }

cat >"$folder/sender.json" <<JSON
{
  "handlers": { "source": { "type": "socket", "to": "unix-dgram:$folder/socket", "format": "json" } },
  "groups": { "*": "source" }
}
JSON

echo "== the contract"
"$weir" vet ./@NAME@.source.so --options "{ \"path\": \"$folder/socket\" }" \
    --write "'$weir' emit -c '$folder/sender.json' -g demo -v latency=12.5 requests=3" --strict

echo "== values through a relay"
cat >"$folder/relay.json" <<JSON
{
  "sources": { "in": { "type": "@NAME@", "plugin": "$PWD/@NAME@.source.so", "path": "$folder/socket", "parse": "json" } },
  "handlers": { "out": { "type": "file", "path": "$folder/values", "format": "json", "linger": "0s" } },
  "groups": { "*": "out" }
}
JSON
"$weir" check "$folder/relay.json"
"$weir" relay -c "$folder/relay.json" &
relay=$!
wait_for test -S "$folder/socket"
"$weir" emit -c "$folder/sender.json" -g demo -v latency=12.5 requests=3
wait_for has_lines 2
kill "$relay"
wait "$relay"
relay=
cat "$folder/values"
grep -q '"group":"demo","name":"latency","value":12.5' "$folder/values"
grep -q '"group":"demo","name":"requests","value":3' "$folder/values"
[ "$(wc -l <"$folder/values")" -eq 2 ]
[ ! -e "$folder/socket" ]
echo "== good"
