#!/bin/sh
# Creates or updates the virtual environment .venv from a lock file, and says which system package is missing.
#
#   deploy/venv.sh             requirements.lock: what Bullpen needs to run, and Bullpen itself (editable)
#   deploy/venv.sh reports     requirements-reports.lock: the same and Spark
#   deploy/venv.sh dev         requirements-dev.lock: the same and the development tools
#   deploy/venv.sh bench       requirements-bench.lock: the same and the queues of the benchmark
#
# PYTHON names the interpreter (default: python3). Stamps in .venv hold the checksums of their inputs:
# - a new runtime lock, another Python version or a moved checkout creates .venv again;
# - a new development or benchmark lock is installed into it;
# - a changed pyproject.toml installs Bullpen alone;
# - without a change, nothing is installed.
set -eu
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
venv=.venv
level=${1:-runtime}

say() { printf '==> %s\n' "$*"; }

missing() {
    printf 'Error: %s\n' "$1" >&2
    printf '  Install it:  %s\n' "$2" >&2
    [ $# -lt 3 ] || printf '  %s\n' "$3" >&2
    exit 1
}

check_python() {
    command -v "$python" >/dev/null 2>&1 ||
        missing "Bullpen needs Python 3.11 or later; $python was not found" \
            "apt-get install python3 python3-venv" "Or name another one:  make PYTHON=/path/to/python3.12 ..."
    version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])') ||
        missing "$python does not run" "apt-get install python3 python3-venv"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        missing "Bullpen needs Python 3.11 or later; $python is $version" \
            "apt-get install python3.11 python3.11-venv" "Then name it:  make PYTHON=python3.11 ..."
    "$python" -c 'import venv, ensurepip' 2>/dev/null ||
        missing "$python has no venv or ensurepip module" "apt-get install python3-venv" \
            "(python${version%.*}-venv if $python is not the distribution's default)"
}

# Reads pip's output and prints its progress. Errors do not pass through here: they go to standard error.
progress() {
    awk -v total="$1" '
        /^(Collecting|Processing) / { if (++n % 10 == 0) { printf "    %d of %d packages\n", n, total; fflush() } }
        /^Installing collected/ { print "    installing"; fflush() }'
}

install_lock() {
    total=$(grep -c '^[a-z0-9]' "$1")
    say "installing $1 ($total packages)"
    rm -f "$venv/.pip-failed"
    { "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off \
        --require-hashes -r "$1" || touch "$venv/.pip-failed"; } | progress "$total"
    [ ! -e "$venv/.pip-failed" ] || {
        printf 'Error: pip could not install %s (see above)\n  Run the same command to try again.\n' "$1" >&2
        exit 1
    }
}

is_current() { [ "$(cat "$venv/.stamp-$1" 2>/dev/null)" = "$2" ]; }
mark_current() { printf '%s\n' "$2" >"$venv/.stamp-$1"; }

case $level in
runtime) lock=requirements.lock ;;
reports | dev | bench) lock=requirements-$level.lock ;;
*) printf 'Usage: deploy/venv.sh [reports|dev|bench]\n' >&2 && exit 2 ;;
esac
base_key="$(cksum <requirements.lock) $(pwd)"
lock_key="$(cksum <"$lock")"
project_key="$(cksum <pyproject.toml)"
check_python
base_key="$base_key $version"

if ! is_current base "$base_key"; then
    say "creating $venv with Python $version"
    "$python" -m venv --clear "$venv"
fi
# Each larger lock holds the smaller ones, so one installation is enough.
if ! is_current base "$base_key" || { [ "$level" != runtime ] && ! is_current "$level" "$lock_key"; }; then
    install_lock "$lock"
    mark_current base "$base_key"
    [ "$level" != bench ] || mark_current dev "$(cksum <requirements-dev.lock)"
    case $level in dev | bench) mark_current reports "$(cksum <requirements-reports.lock)" ;; esac
    [ "$level" = runtime ] || mark_current "$level" "$lock_key"
fi
if ! is_current project "$project_key"; then
    say "installing Bullpen (editable)"
    "$venv/bin/python" -m pip install --disable-pip-version-check --quiet \
        --no-deps --no-build-isolation --editable .
    mark_current project "$project_key"
fi
