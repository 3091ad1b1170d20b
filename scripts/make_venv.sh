#!/bin/sh
# Makes a fresh virtual environment with the first usable Python >= 3.11: make_venv.sh DIR. Set PYTHON to choose one yourself.
set -eu

without_venv=
for name in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
    if "$name" -c 'import ensurepip, venv' 2>/dev/null; then
        echo "Making $1 with $("$name" --version) ..."
        exec "$name" -m venv --clear "$1"
    fi
    without_venv=$name
done

if [ -n "$without_venv" ]; then
    version=$("$without_venv" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    echo "$without_venv is new enough but lacks the modules venv and ensurepip." >&2
    echo "On Debian or Ubuntu: apt-get install python$version-venv. Elsewhere: install a complete Python >= 3.11." >&2
else
    echo "No Python >= 3.11 found (tried: ${PYTHON:-python3 python3.13 python3.12 python3.11})." >&2
    echo "Install one, or name yours: make setup PYTHON=/path/to/python3" >&2
fi
exit 1
