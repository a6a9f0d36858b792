#!/usr/bin/env bash
# Goal: Taiyen can be a part of another project, by add_subdirectory and by FetchContent: without what only our tests and
# programs need, without our flags in that project or its flags on our sources, and without a target too much; the pack
# library where it is asked for. Method: tests/install/parent, configured by both; the first, with the pack library, is
# built whole.
#
#   tests/install/subproject.sh
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
    echo "$1"
    exit 1
}

configure() { # FOLDER OPTION...
    cmake -S "$here/parent" -B "$folder/$1" -DTAIYEN="$here/../.." -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 \
        "${@:2}" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
    ! grep -i warning "$folder/log" || fail "a warning of CMake's"
}

configure fetched -DFETCH=ON
configure added -DTAIYEN_BUILD_PACK=ON
cmake --build "$folder/added" --parallel 2 >"$folder/log" 2>&1 || { tail -n 50 "$folder/log"; exit 1; }
! grep -i warning: "$folder/log" || fail "warnings of a compiler"
for program in c_static c_shared cpp_static malloc_static pack_static pack_shared; do
    "$folder/added/programs/$program"
done

# Options that contradict are refused, with a text that says what to do.
refused() { # TEXT OPTION...
    ! cmake -S "$here/../.." -B "$folder/refused" "${@:2}" >"$folder/log" 2>&1 || fail "not refused: ${*:2}"
    grep -q "$1" "$folder/log" || { cat "$folder/log"; fail "refused without '$1': ${*:2}"; }
    rm -r "$folder/refused"
}
refused "set TAIYEN_BUILD_PACK=ON" -DTAIYEN_BUILD_PACK=OFF
refused "set TAIYEN_BUILD_PACK=ON" -DTAIYEN_BUILD_PACK=OFF -DTAIYEN_BUILD_{TESTS,BENCH,EXAMPLES}=OFF
refused "TAIYEN_BUILD_REPLICATION=ON" -DTAIYEN_BUILD_REPLICATION=OFF
refused "TAIYEN_CLI_SHARED=OFF" -DTAIYEN_CLI_SHARED=ON

# Nothing is built that the project does not link, and nothing of ours is installed with it or tested in it.
built=$(cd "$folder/added" && find . -name 'lib*.a' -o -name 'lib*.so' | xargs -n 1 basename | sort | tr '\n' ' ')
[ "$built" = "libtaiyen-malloc.a libtaiyen-pack.a libtaiyen-pack.so libtaiyen.a libtaiyen.so " ] || fail "built: $built"
cmake --install "$folder/added" --prefix "$folder/installed" >"$folder/log"
installed=$(cd "$folder/installed" && find . -type f)
[ "$installed" = ./bin/c_static ] || fail "installed with the other project: $installed"
ctest --test-dir "$folder/added" -N | grep -q "Total Tests: 0" || fail "our tests are among the other project's"
echo "added and fetched, built strictly, used; nothing else was built"
