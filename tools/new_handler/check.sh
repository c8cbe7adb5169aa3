#!/bin/sh
# Tests the handler type @NAME@ against the contract, then sends values through it and checks the output.
set -eu
weir=${WEIR:-weir}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

echo "== the contract"
"$weir" vet ./@NAME@.so --options "{ \"path\": \"$folder/vetted\" }" --read "cat '$folder/vetted'" --fuzz 1 --strict

echo "== values through a configuration"
cat >"$folder/weir.json" <<JSON
{
  "handlers": {
    "out": { "type": "@NAME@", "plugin": "$PWD/@NAME@.so", "path": "$folder/values", "format": "json" }
  },
  "groups": { "*": "out" }
}
JSON
"$weir" check "$folder/weir.json"
"$weir" emit -c "$folder/weir.json" -g demo -v latency=12.5 requests=3
cat "$folder/values"
grep -q '"group":"demo","name":"latency","value":12.5' "$folder/values"
grep -q '"group":"demo","name":"requests","value":3' "$folder/values"
[ "$(wc -l <"$folder/values")" -eq 2 ]
echo "== good"
