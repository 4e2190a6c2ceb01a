#!/usr/bin/env bash
# Build the Explorer's page where Node.js is there; where it is not, say so in one line and go on.
set -euo pipefail
cd "$(dirname "$0")/../explorer"

give_up() {
    echo "trnscope: $1, so the Explorer's page is not built (only trnscope open needs it)" >&2
    # CI has Node.js; there the page must be built.
    exit "$([ -n "${CI:-}" ] && echo 1 || echo 0)"
}

is_recent() {
    node -e 'const [a, b] = process.versions.node.split(".").map(Number);
        process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'
}

command -v npm >/dev/null && is_recent || give_up "Node.js 20.19 or newer is not installed"
if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
    npm ci --silent || give_up "npm could not install the page's packages"
fi
echo "trnscope: building the Explorer's page"
npm run --silent build
