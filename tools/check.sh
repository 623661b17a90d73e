#!/usr/bin/env bash
# What must be clean before a commit. Runs everything and fails at the end, so that one run shows all.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0
for command in "ruff check ." "ruff format --check ." "mypy" "lint-imports" "nemolab lint-notebooks"; do
  echo "== $command"
  $command || failed=1
done
exit $failed
