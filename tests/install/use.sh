#!/usr/bin/env bash
# Builds programs of another project against an installed Taiyen, with the CMake package and with pkg-config, and runs them.
#
#   tests/install/use.sh LIBRARIES [CMAKE_OPTION]     LIBRARIES: the folder of libtaiyen.so; the option says where
set -euo pipefail
libraries=$1
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# The shared libraries that a program names are some of these, and libc.
needs_only() { # PATTERN PROGRAM...
    local program more
    for program in "${@:2}"; do
        more=$(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE "^(($1)\.so|libc\.so|ld-linux)" || true)
        [ -z "$more" ] || { echo "$program needs" $more; exit 1; }
    done
}
quietly() { "$@" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }; }

quietly cmake -S "$here/outside" -B "$folder/outside" "${@:2}"
quietly cmake --build "$folder/outside"
for program in c_static c_shared cpp/cpp_static cpp/cpp_shared malloc_shared malloc_static pack_static pack_shared \
    ship_static ship_shared groups_static groups_shared; do
    "$folder/outside/$program"
done
LD_PRELOAD=$libraries/libtaiyen-malloc.so "$folder/outside/malloc_preloaded"
# Who does not pack has nothing of what packing needs, and who packs with the shared library leaves that to it.
needs_only libtaiyen "$folder"/outside/c_*
needs_only 'libtaiyen|libstdc\+\+|libm|libgcc_s' "$folder"/outside/cpp/cpp_{static,shared}
needs_only 'libtaiyen|libtaiyen-pack' "$folder/outside/pack_shared"
needs_only 'libtaiyen|libtaiyen-ship' "$folder/outside/ship_shared"
needs_only 'libtaiyen|libtaiyen-twophase' "$folder/outside/groups_shared"

export PKG_CONFIG_PATH=$libraries/pkgconfig
read -ra flags < <(pkg-config --cflags --libs taiyen)
cc -o "$folder/with_pc" "$here/outside/main.c" "${flags[@]}"
LD_LIBRARY_PATH=$libraries "$folder/with_pc"
# The static library needs no C++ run-time.
cc -o "$folder/with_pc_static" "$here/outside/main.c" -Wl,-Bstatic "${flags[@]}" -Wl,-Bdynamic
"$folder/with_pc_static"
needs_only libtaiyen "$folder/with_pc"
needs_only libc "$folder/with_pc_static"
read -ra flags < <(pkg-config --cflags --libs taiyen-malloc)
cc -o "$folder/malloc_with_pc" "$here/outside/malloc.c" "${flags[@]}"
LD_LIBRARY_PATH=$libraries "$folder/malloc_with_pc"
read -ra flags < <(pkg-config --cflags --libs taiyen-pack)
cc -o "$folder/pack_with_pc" "$here/outside/pack.c" "${flags[@]}"
LD_LIBRARY_PATH=$libraries "$folder/pack_with_pc"
needs_only 'libtaiyen|libtaiyen-pack' "$folder/pack_with_pc"
read -ra flags < <(pkg-config --cflags --libs taiyen-ship)
cc -o "$folder/ship_with_pc" "$here/outside/ship.c" "${flags[@]}" -Wl,-rpath-link,"$libraries"
LD_LIBRARY_PATH=$libraries "$folder/ship_with_pc"
if [ -e "$libraries/libtaiyen-standby.so" ]; then
    "$folder/outside/program_standby"
    "$folder/outside/program_standby_shared"
    needs_only 'libtaiyen|libtaiyen-standby' "$folder/outside/program_standby_shared"
    read -ra flags < <(pkg-config --cflags --libs taiyen-standby)
    cc -o "$folder/standby_with_pc" "$here/outside/standby.c" "${flags[@]}" -Wl,-rpath-link,"$libraries"
    LD_LIBRARY_PATH=$libraries "$folder/standby_with_pc"
fi
# Of the static pack library: what others made may be shared.
read -ra flags < <(pkg-config --static --cflags --libs taiyen-pack | sed -E 's/-l(taiyen[a-z-]*)/-l:lib\1.a/g')
cc -o "$folder/pack_with_pc_static" "$here/outside/pack.c" "${flags[@]}"
"$folder/pack_with_pc_static"
needs_only 'liblz4|libzstd|libstdc\+\+|libm|libgcc_s' "$folder/pack_with_pc_static"
if [ "$(realpath "$(pkg-config --variable=libdir taiyen)")" != "$(realpath "$libraries")" ]; then
    echo "pkg-config says the libraries are in $(pkg-config --variable=libdir taiyen)"
    exit 1
fi
