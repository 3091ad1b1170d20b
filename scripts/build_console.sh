#!/usr/bin/env bash
# Builds the console from console/ into the folder given, with the packages that scripts/prepare_interop.sh put into .tools/console.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$(realpath -m "$1")
readonly PACKAGES=.tools/console
rm -rf "$PACKAGES/build"
mkdir -p "$PACKAGES/build"
cp -r console/index.html console/public console/src console/tsconfig.json console/vite.config.js console/package.json "$PACKAGES/build/"
cd "$PACKAGES/build"
export CONSOLE_OUT=$out PATH=$PWD/../node_modules/.bin:$PATH
tsc --noEmit
vite build --logLevel warn
