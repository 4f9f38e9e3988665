#!/bin/sh
# Recomputes requirements.lock (what hushql needs) and requirements-dev.lock (that and what its tests need).
# Keeps the versions already locked unless pyproject.toml excludes them; pass --upgrade to move to the newest.
set -eu

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"${PYTHON:-python3}" -m venv "$scratch/venv"
"$scratch/venv/bin/python" -m pip install --quiet 'pip-tools==7.6.2'

compile() { # compile FILE [OPTION...]
    file=$1
    shift
    "$scratch/venv/bin/pip-compile" --quiet --generate-hashes --allow-unsafe --strip-extras --annotation-style=line \
        --no-header --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
        --output-file "$file" "$@" pyproject.toml
}

# the test environment first, which has every extra: what it settles for binds the smaller one
compile requirements-dev.lock --extra test --extra spark "$@"
compile requirements.lock --constraint requirements-dev.lock
sed -i 's/ -c requirements-dev.lock,//' requirements.lock
