#!/usr/bin/env bash
# Fetches Keycloak from Maven Central into .tools/keycloak for `make interop-keycloak`, and says what else it needs.
# Needs mvn, unzip, a JDK of version 21 or newer, and Chromium as /usr/bin/chromium. Every step is bounded in time.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly VERSION=26.7.3
readonly SHA256=27a6535553c3cdcd083872ba40629efafb3475e3b758e0c6f691395561dd0f1f
readonly FOLDER=.tools/keycloak
readonly ZIP=keycloak-quarkus-dist-$VERSION.zip

for program in mvn unzip sha256sum timeout /usr/bin/chromium; do
    command -v "$program" >/dev/null || { echo "make interop-keycloak needs $program" >&2; exit 1; }
done
if [ "$(cat $FOLDER/.installed 2>/dev/null || true)" = "$VERSION" ]; then exit 0; fi
echo "Fetching $FOLDER ..."
rm -rf $FOLDER
mkdir -p $FOLDER
timeout 600 mvn --quiet --batch-mode dependency:copy -Dartifact=org.keycloak:keycloak-quarkus-dist:$VERSION:zip \
    -DoutputDirectory="$PWD/$FOLDER"
printf '%s  %s\n' "$SHA256" "$FOLDER/$ZIP" | sha256sum --check --quiet
unzip -q $FOLDER/$ZIP -d $FOLDER
rm $FOLDER/$ZIP
mv $FOLDER/keycloak-$VERSION/* $FOLDER/
echo $VERSION >$FOLDER/.installed
