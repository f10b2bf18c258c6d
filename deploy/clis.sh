#!/bin/sh
# Installs the real `claude` and `codex` for the tests that run them, and says which program is missing.
#
#   deploy/clis.sh             .clis/bin/claude and .clis/bin/codex
#
# From npm if node and npm are installed, else from PyPI; CLIS_FROM=npm or CLIS_FROM=pip chooses. BULLPEN_CLIS sets
# another directory, PYTHON the interpreter. A stamp holds the installed versions; nothing is installed twice.
set -eu
cd "$(dirname "$0")/.."

# npm and PyPI have different versions: of claude, 2.1.197 and 2.1.202.
npm_pins='@anthropic-ai/claude-code@2.1.197 @openai/codex@0.169.0'
pip_pins='claude-agent-sdk==0.2.111 openai-codex-cli-bin==0.163.0'

python=${PYTHON:-python3}
clis=${BULLPEN_CLIS:-.clis}
from=${CLIS_FROM:-}

say() { printf '==> %s\n' "$*"; }

fail() {
    printf 'Error: %s\n' "$1" >&2
    exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

install_npm() {
    # A lock file would hold the address of the registry.
    # shellcheck disable=SC2086 # the pins are words
    npm install --prefix "$clis" --no-save --no-package-lock --omit-lockfile-registry-resolved \
        --no-audit --no-fund --loglevel=error $npm_pins >/dev/null ||
        fail "npm could not install $npm_pins (see above). Run the same command to try again."
    claude=node_modules/.bin/claude
    codex=node_modules/.bin/codex
}

install_pip() {
    "$python" -m venv "$clis/venv" || fail "$python could not create $clis/venv"
    # Only their programs are used, so no dependencies are installed.
    # shellcheck disable=SC2086
    "$clis/venv/bin/python" -m pip install --disable-pip-version-check --quiet --no-deps $pip_pins ||
        fail "pip could not install $pip_pins (see above). Run the same command to try again."
    claude=$(cd "$clis" && find venv -path '*/claude_agent_sdk/_bundled/claude')
    codex=$(cd "$clis" && find venv -path '*/codex_cli_bin/bin/codex')
}

[ -n "$from" ] || { if has node && has npm; then from=npm; else from=pip; fi; }
case $from in
npm) key="npm $npm_pins $(uname -sm)" ;;
pip) key="pip $pip_pins $(uname -sm)" ;;
*) fail "CLIS_FROM must be npm or pip, not $from" ;;
esac
if [ "$(cat "$clis/.stamp" 2>/dev/null)" = "$key" ] && [ -x "$clis/bin/claude" ] && [ -x "$clis/bin/codex" ]; then
    exit 0
fi

case $from in
npm) { has node && has npm; } || fail "CLIS_FROM=npm needs node and npm on the path" ;;
pip) has "$python" || fail "install node and npm, or Python; $python was not found" ;;
esac
say "installing claude and codex into $clis from $from (about 700 MB)"
rm -rf "$clis/.stamp" "$clis/bin" "$clis/node_modules" "$clis/venv"
mkdir -p "$clis/bin"
"install_$from"
# Relative links still work after the checkout moves.
ln -s "../$claude" "$clis/bin/claude"
ln -s "../$codex" "$clis/bin/codex"
for cli in claude codex; do
    "$clis/bin/$cli" --version >/dev/null || fail "$clis/bin/$cli does not run here"
done
printf '%s\n' "$key" >"$clis/.stamp"
