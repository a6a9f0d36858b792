#!/usr/bin/env bash
# Goal: what is installed can be used from outside. Method: install into a temporary folder, move it (nothing may
# remember where it was), then build and run programs of another project with the CMake package and with pkg-config.
#
#   tests/install/run.sh BUILD_FOLDER
set -euo pipefail
build=$1
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cmake --install "$build" --prefix "$folder/first" >"$folder/log" || { cat "$folder/log"; exit 1; }
mv "$folder/first" "$folder/prefix"

cmake -S "$here/outside" -B "$folder/outside" -DCMAKE_PREFIX_PATH="$folder/prefix" >"$folder/log" &&
    cmake --build "$folder/outside" >>"$folder/log" || { cat "$folder/log"; exit 1; }
for program in c_static c_shared cpp/cpp_static cpp/cpp_shared malloc_shared malloc_static; do
    "$folder/outside/$program"
done
LD_PRELOAD=$(find "$folder/prefix" -name libtaiyen-malloc.so) "$folder/outside/malloc_preloaded"

pc=$(find "$folder/prefix" -name taiyen.pc)
read -ra flags < <(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs taiyen)
libraries=$(dirname "$(dirname "$pc")")
cc -o "$folder/with_pc" "$here/outside/main.c" "${flags[@]}"
LD_LIBRARY_PATH=$libraries "$folder/with_pc"
cc -o "$folder/with_pc_static" "$here/outside/main.c" -Wl,-Bstatic "${flags[@]}" -Wl,-Bdynamic # no C++ run-time
"$folder/with_pc_static"
read -ra flags < <(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs taiyen-malloc)
cc -o "$folder/malloc_with_pc" "$here/outside/malloc.c" "${flags[@]}"
LD_LIBRARY_PATH=$libraries "$folder/malloc_with_pc"

# The public headers and nothing else of ours.
diff <(cd "$here/../../include" && find . -type f | sort) <(cd "$folder/prefix/include" && find . -type f | sort)
echo "installed, moved and used from outside"
