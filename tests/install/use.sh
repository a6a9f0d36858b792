#!/usr/bin/env bash
# Builds programs of another project against an installed Taiyen, with the CMake package and with pkg-config, and runs them.
#
#   tests/install/use.sh LIBRARIES [CMAKE_OPTION]     LIBRARIES: the folder of libtaiyen.so; the option tells CMake where
set -euo pipefail
libraries=$1
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
quietly() { "$@" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }; }

quietly cmake -S "$here/outside" -B "$folder/outside" "${@:2}"
quietly cmake --build "$folder/outside"
for program in c_static c_shared cpp/cpp_static cpp/cpp_shared malloc_shared malloc_static; do
    "$folder/outside/$program"
done
LD_PRELOAD=$libraries/libtaiyen-malloc.so "$folder/outside/malloc_preloaded"

export PKG_CONFIG_PATH=$libraries/pkgconfig
read -ra flags < <(pkg-config --cflags --libs taiyen)
cc -o "$folder/with_pc" "$here/outside/main.c" "${flags[@]}"
LD_LIBRARY_PATH=$libraries "$folder/with_pc"
# The static library needs no C++ run-time.
cc -o "$folder/with_pc_static" "$here/outside/main.c" -Wl,-Bstatic "${flags[@]}" -Wl,-Bdynamic
"$folder/with_pc_static"
read -ra flags < <(pkg-config --cflags --libs taiyen-malloc)
cc -o "$folder/malloc_with_pc" "$here/outside/malloc.c" "${flags[@]}"
LD_LIBRARY_PATH=$libraries "$folder/malloc_with_pc"
if [ "$(realpath "$(pkg-config --variable=libdir taiyen)")" != "$(realpath "$libraries")" ]; then
    echo "pkg-config says the libraries are in $(pkg-config --variable=libdir taiyen)"
    exit 1
fi
