#!/usr/bin/env bash
# Goal: a newcomer sees what scripts/setup does while it installs packages, and why it could not. Method: stand-ins for
# apt-get, dpkg-query, id and the programs that are looked for.
#
#   tests/install/setup_progress.sh
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
    echo "$1"
    cat "$folder/said"
    exit 1
}

cat >"$folder/apt-get" <<'END'
#!/bin/bash
case $* in
*update) ;;
*--print-uris*) printf "'http://a/x.deb' x.deb 3000000 SHA256:1\n'http://a/y.deb' y.deb 1000001 SHA256:2\n" ;;
*)
    printf 'dlstatus:1:50.5:Retrieving file 1 of 2\nSelecting package\npmstatus:x:12.5:Unpacking x (amd64)\n'
    [ -z "${BROKEN:-}" ] || { echo "E: the disk is full"; exit 100; }
    touch "$INSTALLED"
    ;;
esac
END
cat >"$folder/dpkg-query" <<'END'
#!/bin/bash
[ ! -e "$INSTALLED" ] || printf installed
END
printf '#!/bin/bash\necho 0\n' >"$folder/id"
chmod +x "$folder"/*
for tool in bash env sort awk mktemp tail cat rm touch dirname; do
    ln -s "$(command -v "$tool")" "$folder/$tool"
done
export INSTALLED=$folder/installed

PATH=$folder bash "$source/scripts/setup" docs 2>"$folder/said" </dev/null || fail "it failed"
for text in "installing doxygen" ": 2 (5 MB)" "downloading 50%" "installing 12%"; do
    grep -qF "$text" "$folder/said" || fail "it did not say: $text"
done
! grep -F "Selecting" "$folder/said" || fail "it said all that apt-get said"

rm "$INSTALLED"
! BROKEN=1 PATH=$folder bash "$source/scripts/setup" docs 2>"$folder/said" </dev/null || fail "it did not fail"
for text in "E: the disk is full" "could not install" "apt-get install --no-install-recommends"; do
    grep -qF "$text" "$folder/said" || fail "it did not say: $text"
done
echo "progress is reported, and a failure with its reason"
