#!/bin/sh
# backup.sh: a script that measures itself by `weir emit`: how a backup ended, how long it took and how large it is.
#
#     WEIR_CONFIG='{"groups":{"*":"console"}}' sh backup.sh FOLDER ARCHIVE
#
# Each `weir emit` is a process of its own. A relay, such as config/forward_relay.json, adds up what all runs count.

if [ $# -ne 2 ]; then
    echo "usage: backup.sh FOLDER ARCHIVE" >&2
    exit 2
fi

begin=$(date +%s.%N)
tar -C "$1" -czf "$2" .
status=$?
end=$(date +%s.%N)

# What cannot be delivered is said on standard error, and no failure of the backup.
measure() { weir emit -g backup -l folder="$folder" "$@"; }
folder=$1

measure --histogram seconds="$(echo "$end $begin" | awk '{ printf "%.3f", $1 - $2 }')"
if [ $status -eq 0 ]; then
    measure --counter success=1
    measure --gauge bytes="$(stat -c %s "$2")"
else
    measure --counter failure=1
fi
exit $status
