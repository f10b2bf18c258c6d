#!/usr/bin/env bash
# Installs Bullpen on a bare Debian root and checks that it works there, twice:
# - from a clean clone of this repository, with `make up`;
# - from the wheel, in a virtual environment outside the checkout.
#
#   make fresh
#
# The root is created by debootstrap with python3, python3-venv, make and ca-certificates only, and removed at the
# end. Needs root, debootstrap and about 700 MB below TMPDIR (default: /var/tmp). FRESH_SUITE (default: bookworm) and
# FRESH_MIRROR choose the Debian. This machine's pip configuration, certificates and proxy variables are copied into
# the root, so that pip reaches the same index as here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

suite=${FRESH_SUITE:-bookworm}
packages=python3,python3-venv,make,ca-certificates
user=1000

say() { printf '==> %s\n' "$*"; }

fail() {
    printf 'Error: %s\n' "$1" >&2
    printf '  %s\n' "${@:2}" >&2
    exit 1
}

check_machine() {
    ((EUID == 0)) || fail "make fresh needs root, to create a Debian root and to change into it" "Run:  sudo make fresh"
    for each in debootstrap unshare chroot git; do
        command -v "$each" >/dev/null || missing+=("$each")
    done
    ((${#missing[@]} == 0)) || fail "make fresh needs ${missing[*]}" \
        "Install them:  apt-get install debootstrap git util-linux coreutils"
    unshare --mount --pid --fork true 2>/dev/null ||
        fail "this machine does not allow new mount namespaces" "Run make fresh outside of a restricted container."
}
missing=()

# Copies what pip needs to reach its index. It is not written to the repository.
copy_network() {
    local root=$1 each
    for each in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
        [[ ! -e $each ]] || install -D -m 0644 "$each" "$root$each"
    done
    for each in .config/pip/pip.conf .pip/pip.conf; do
        [[ ! -e $HOME/$each ]] || install -D -m 0644 -o $user -g $user "$HOME/$each" "$root/home/developer/$each"
    done
    chown -R $user:$user "$root/home/developer"
    # Local directories that the configuration names; an index keeps its files beside its pages.
    { "${PYTHON:-python3}" -m pip config list 2>/dev/null || true; } | { grep -oE "(file://)?/[^' ,\\]+" || true; } |
        sed -E 's,^file://(/.+)/[^/]+/?$,\1,' | sort -u | while read -r each; do
        [[ -d $each && ! -e $root$each ]] || continue
        mkdir -p "$root$each"
        mount --bind --read-only "$each" "$root$each"
    done
}

# Runs a command of the root's own user, in its home directory and with a small environment.
inside() {
    local root=$1 variables=() name
    shift
    while read -r name; do variables+=("$name=${!name}"); done < <(
        compgen -e | grep -E '^(PIP_.*|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)$|_proxy$|_PROXY$'
    )
    chroot --userspec=$user:$user "$root" /usr/bin/env --ignore-environment --chdir=/home/developer \
        HOME=/home/developer PATH=/usr/bin:/bin LANG=C.UTF-8 "${variables[@]}" "$@" </dev/null
}

# Starts Bullpen, asks for an answer, and stops it. The first argument is the root, the others are the programs.
try_out() {
    local root=$1 bullpen=$2 answer
    answer=$(inside "$root" "$bullpen" send "hello from a bare Debian")
    printf '%s\n' "$answer"
    grep -q "hello from a bare Debian" <<<"$answer" || fail "bullpen send printed no answer"
    inside "$root" "$bullpen" status
    inside "$root" "$bullpen" doctor || fail "bullpen doctor found a problem"
}

size() { du -sm "$1" | cut -f1; }
count() { find "$1" -maxdepth 5 -name '*.dist-info' | wc -l; }

run_all() {
    local root=$1 began clone=/home/developer/bullpen
    say "creating a Debian root: $suite with ${packages//,/, }"
    began=$SECONDS
    debootstrap --variant=minbase --include="$packages" "$suite" "$root" ${FRESH_MIRROR:+"$FRESH_MIRROR"} \
        >"$root.log" 2>&1 || { tail -n 20 "$root.log" >&2 && fail "debootstrap failed"; }
    printf '    %s s, %s MB\n' $((SECONDS - began)) "$(size "$root")"

    mount -t proc proc "$root/proc"
    mkdir -p "$root/dev/pts" "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
    [[ -e $root/dev/ptmx ]] || ln -s pts/ptmx "$root/dev/ptmx"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    printf 'developer:x:%s:%s::/home/developer:/bin/sh\n' $user $user >>"$root/etc/passwd"
    printf 'developer:x:%s:\n' $user >>"$root/etc/group"
    mkdir -p "$root/home/developer"
    copy_network "$root"

    [[ -z $(git status --porcelain) ]] || say "uncommitted changes are not part of the clone"
    git clone --quiet --no-hardlinks . "$root$clone"
    chown -R $user:$user "$root$clone"

    say "make up in a clean clone"
    began=$SECONDS
    inside "$root" make -C "$clone" up
    printf '    %s s, %s packages, %s MB\n' $((SECONDS - began)) "$(count "$root$clone/.venv")" "$(size "$root$clone/.venv")"
    try_out "$root" "$clone/.venv/bin/bullpen"
    inside "$root" make -C "$clone" down

    say "the wheel in a virtual environment of its own"
    inside "$root" make -C "$clone" wheel
    rm -rf "$root/home/developer/.bullpen" "$root/home/developer/bullpen-workspace"
    mv "$root$clone/dist" "$root/home/developer/dist"
    rm -rf "${root:?}$clone"
    began=$SECONDS
    inside "$root" python3 -m venv wheel
    inside "$root" sh -c 'wheel/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl' 2>&1 |
        { grep -v '^WARNING: Location' || true; }
    printf '    %s s, %s packages, %s MB\n' $((SECONDS - began)) "$(count "$root/home/developer/wheel")" \
        "$(size "$root/home/developer/wheel")"
    began=$SECONDS
    inside "$root" wheel/bin/bullpen up
    try_out "$root" wheel/bin/bullpen
    inside "$root" wheel/bin/bullpen down
    printf '    %s s for up, send, status, doctor and down\n' $((SECONDS - began))
    say "both work on a bare $suite"
}

if [[ ${1:-} == --inside ]]; then
    run_all "$2"
    exit
fi

check_machine
directory=$(mktemp -d "${TMPDIR:-/var/tmp}/bullpen-fresh.XXXXXX")
child=
clean_up() {
    # All mounts and processes of the root are in namespaces that end with the child.
    if [[ -n $child ]]; then
        kill -KILL "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    rm -rf --one-file-system "$directory"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
mkdir "$directory/root"
unshare --mount --propagation private --pid --fork --kill-child --mount-proc \
    bash "${BASH_SOURCE[0]}" --inside "$directory/root" &
child=$!
wait "$child"
