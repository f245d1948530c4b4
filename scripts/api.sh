#!/usr/bin/env bash
# api.sh [--update]: checks the OpenAPI document with Redocly, and checks that the TypeScript client fits it. With --update it writes the client's
# types. The programs are installed into .cache/api at the versions of clients/typescript/package-lock.json.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD client=clients/typescript document=internal/httpapi/testdata/openapi.json work=$PWD/.cache/api
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
if ! command -v npm >/dev/null; then
  echo "error: npm is missing; install Node.js 20 or later" >&2
  exit 1
fi
mkdir -p "$work"
if ! cmp -s "$client/package-lock.json" "$work/installed.json"; then
  cp "$client/package.json" "$client/package-lock.json" "$work"
  (cd "$work" && npm ci --ignore-scripts --no-audit --no-fund --loglevel error)
  cp "$client/package-lock.json" "$work/installed.json"
fi
rm -rf "$work/src" "$work/out"
cp -r "$client/src" "$client/tsconfig.json" "$client/redocly.yaml" "$work"
cp "$document" "$work/openapi.json"
cd "$work"
bin=node_modules/.bin
"$bin/redocly" lint openapi.json --config redocly.yaml
"$bin/openapi-typescript" openapi.json --output src/schema.ts --redocly redocly.yaml
if [[ ${1:-} == --update ]]; then
  cp src/schema.ts "$root/$client/src/schema.ts"
elif ! diff -u "$root/$client/src/schema.ts" src/schema.ts; then
  echo "error: the types of the TypeScript client are out of date; run make api ARGS=--update" >&2
  exit 1
fi
"$bin/tsc" -p .
node --test out/
