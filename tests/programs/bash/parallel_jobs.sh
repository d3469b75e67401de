#!/usr/bin/env bash
# Runs jobs in the background, collects their results from files, and cleans up.
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"; echo "cleaned up"' EXIT

square() {
  local n=$1
  echo $(( n * n )) > "$scratch/$n"
}

pids=()
for n in "$@"; do
  square "$n" &
  pids+=("$!")
done

failed=0
for pid in "${pids[@]}"; do
  wait "$pid" || failed=$((failed + 1))
done

total=0
for n in $(ls "$scratch" | sort -n); do
  read -r result < "$scratch/$n"
  echo "$n squared is $result"
  total=$((total + result))
done
echo "total $total, failed $failed"
