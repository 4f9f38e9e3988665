#!/bin/sh
# Makes proxy/console/static/vendor again from the pinned packages, whose hashes npm checks against package-lock.json,
# and says whether every file is the one that is kept. With --write the new files are kept.
#   tools/console/build.sh [--write]
set -eu

cd "$(dirname "$0")"
kept=../../proxy/console/static/vendor
npm ci --silent --no-audit --no-fund
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
node build.mjs "$made"
(cd "$made" && sha256sum -- * >SHA256SUMS)
if [ "${1:-}" = --write ]; then
    rm -rf "$kept"
    cp -r "$made" "$kept"
    chmod 755 "$kept"
fi
diff -r "$made" "$kept" && echo "the bundled scripts are those of the pinned packages"
