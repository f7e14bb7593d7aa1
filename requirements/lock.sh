#!/usr/bin/env bash
# Writes requirements/*.txt from pyproject.toml: `make lock`, or with --upgrade `make lock UPGRADE=1`.
#
# Everything is resolved at once first, so that no two locks name different versions. Each lock but
# runtime.txt then holds only what it adds to the runtime. Every file that a release offers is listed
# by its hash, for any system and any Python from 3.11 on; no index is named, pip's own counts.
set -euo pipefail
cd "$(dirname "$0")/.."

python=.venv/bin/python
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
all=$folder/all.txt
work=$folder/work.txt  # uv keeps the versions that it finds in its output file

compile() {  # compile LOCK [OPTION | INPUT]…
    local lock=$1
    shift
    "$python" -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-header --output-file "$work" "$@"
    sed '/^# The following packages were excluded/,$d' "$work" | sed '${/^$/d;}' >"$lock"
}

lock() {  # lock NAME [OPTION]…: what pyproject.toml asks for, in the versions resolved for all
    local file=requirements/$1.txt
    shift
    cp "$all" "$work"
    compile "$file" pyproject.toml "$@"
}

pinned() {  # an option for each package that the lock installs on every system: leave it out
    sed -n 's/^\([a-z0-9-]*\)==[^;]*$/--no-emit-package=\1/p' "requirements/$1.txt"
}

cat requirements/*.txt >"$work" 2>/dev/null || true
compile "$all" pyproject.toml --all-extras "$@"

# shellcheck disable=SC2046  # one option a word
{
    lock runtime --extra anthropic
    lock server --extra dev-server $(pinned runtime)
    lock test --extra test $(pinned runtime)
    lock benchmark --extra benchmark $(pinned runtime)
    lock lint --extra lint $(pinned runtime) $(pinned test)
}

cat requirements/build.txt >"$work" 2>/dev/null || true
"$python" -c 'import tomllib
print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' |
    compile requirements/build.txt --no-annotate "$@" -
