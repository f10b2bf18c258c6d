#!/bin/sh
# Makes or refreshes a virtual environment from a lock file, and says what is missing when it cannot.
#
#   deploy/venv.sh             .venv from requirements.lock, with Bullpen itself as an editable install
#   deploy/venv.sh bench       adds requirements-bench.lock
#
# PYTHON names the interpreter (default python3). A stamp inside the environment holds the checksums of what
# it was made from: the environment is made anew when the lock or the interpreter changed or the checkout
# moved, Bullpen alone is installed again when only pyproject.toml did, and otherwise nothing is done.
set -eu
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
venv=.venv

say() { printf '==> %s\n' "$*"; }

missing() {
    printf 'error: %s\n' "$1" >&2
    printf '  install it with:  %s\n' "$2" >&2
    [ $# -lt 3 ] || printf '  %s\n' "$3" >&2
    exit 1
}

check_python() {
    command -v "$python" >/dev/null 2>&1 ||
        missing "Python 3.11 or later is needed, and there is no $python" \
            "apt-get install python3 python3-venv" "or name another one:  make PYTHON=/path/to/python3.12 ..."
    version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])') ||
        missing "$python does not run" "apt-get install python3 python3-venv"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        missing "Python 3.11 or later is needed, and $python is $version" \
            "apt-get install python3.11 python3.11-venv" "and name it:  make PYTHON=python3.11 ..."
    "$python" -c 'import venv, ensurepip' 2>/dev/null ||
        missing "$python has no venv or ensurepip module" "apt-get install python3-venv" \
            "(python${version%.*}-venv, where $python is not the distribution's default)"
}

# Reads pip's output; shows how far it is. Errors come on standard error, past this.
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
        printf 'error: pip could not install %s (see above); the same command tries again\n' "$1" >&2
        exit 1
    }
}

is_current() { [ "$(cat "$venv/.stamp-$1" 2>/dev/null)" = "$2" ]; }
mark_current() { printf '%s\n' "$2" >"$venv/.stamp-$1"; }

base_key="$(cksum <requirements.lock) $(pwd)"
project_key="$(cksum <pyproject.toml)"
check_python
base_key="$base_key $version"

if ! is_current base "$base_key"; then
    say "making $venv with Python $version"
    "$python" -m venv --clear "$venv"
    install_lock requirements.lock
    mark_current base "$base_key"
fi
if ! is_current project "$project_key"; then
    say "installing Bullpen itself (editable)"
    "$venv/bin/python" -m pip install --disable-pip-version-check --quiet \
        --no-deps --no-build-isolation --editable .
    mark_current project "$project_key"
fi
if [ "${1:-}" = bench ]; then
    bench_key="$(cksum <requirements-bench.lock)"
    if ! is_current bench "$bench_key"; then
        install_lock requirements-bench.lock
        mark_current bench "$bench_key"
    fi
fi
