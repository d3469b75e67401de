#!/usr/bin/env bash
# A deployment that stops at the step that fails.
set -euo pipefail

step() {
  local name=$1
  shift
  echo "step: $name"
  if ! "$@"; then
    echo "failed: $name" >&2
    exit 3
  fi
}

build() { echo "  built $(printf '%s\n' a.o b.o | wc -l) objects"; }
check() { [[ $(printf 'x%.0s' {1..5}) == xxxxx ]]; }
upload() { grep -q ready /dev/null; }
announce() { echo "  never announced"; }

step build build
step check check
step upload upload
step announce announce
