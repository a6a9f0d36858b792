#!/usr/bin/env bash
# Goal: packages build, install and are found on a core that was installed without them. Method: install the core and the
# drop-in malloc alone, then configure, build and install each package from its own folder; programs of another project use
# them all. Minutes, and nothing that a change of the code can break.
#
#   tests/install/packages.sh BUILD_FOLDER
set -euo pipefail
build=$1
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
quietly() { "$@" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }; }

quietly cmake -S "$source" -B "$folder/core" -G Ninja -DTAIYEN_BUILD_CLI=OFF -DTAIYEN_BUILD_BENCH=OFF -DTAIYEN_BUILD_EXAMPLES=OFF \
    -DTAIYEN_BUILD_TESTS=OFF -DTAIYEN_BUILD_VALUES=OFF -DTAIYEN_BUILD_TWOPHASE=OFF -DTAIYEN_BUILD_PACK=OFF -DCMAKE_INSTALL_PREFIX="$folder/prefix"
mkdir -p "$folder/core/lib"
cp -a "$build"/lib/libtaiyen.* "$build"/lib/libtaiyen-malloc.* "$folder/core/lib"
quietly cmake --install "$folder/core"
[ -z "$(find "$folder/prefix" -name '*pack*' -o -name '*value*' -o -name '*ship*' -o -name '*twophase*')" ] || { echo "the core has packages in it"; exit 1; }

for package in values twophase pack replication; do
    quietly cmake -S "$source/packages/$package" -B "$folder/$package" -G Ninja -DCMAKE_PREFIX_PATH="$folder/prefix" \
        -DCMAKE_INSTALL_PREFIX="$folder/prefix"
    quietly cmake --build "$folder/$package"
    quietly cmake --install "$folder/$package"
done
"$here/use.sh" "$(dirname "$(find "$folder/prefix" -name libtaiyen.a)")" -DCMAKE_PREFIX_PATH="$folder/prefix"
