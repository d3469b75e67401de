#!/usr/bin/env bash
# Summarizes requests on standard input by status, and leaves the errors in a file.
set -euo pipefail

declare -A count=()
errors=errors.log
: > "$errors"

while read -r method path status; do
  [[ -z $method || $method == \#* ]] && continue
  count[$status]=$(( ${count[$status]:-0} + 1 ))
  if (( status >= 400 )); then
    printf '%s %s\n' "$status" "$path" >> "$errors"
  fi
done

for status in $(printf '%s\n' "${!count[@]}" | sort -n); do
  printf '%s %2d %s\n' "$status" "${count[$status]}" "$(printf '#%.0s' $(seq "${count[$status]}"))"
done

echo "errors: $(wc -l < "$errors")"
sort "$errors" | awk '{ print "  " $2 " (" $1 ")" }'
