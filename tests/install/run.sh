#!/usr/bin/env bash
# Goal: what is installed can be used from outside, wherever it is, and the loader finds it. Method: install as
# `make install` does into a temporary folder, move it (nothing may remember where it was), then build and run programs of
# another project with the CMake package and with pkg-config; likewise for folders of libraries as distributions have
# them. The system's ldconfig and id are stood in for.
#
#   tests/install/run.sh BUILD_FOLDER
set -euo pipefail
build=$1
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
    echo "$1"
    exit 1
}
quietly() { "$@" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }; }

# 1. Installed and moved.
quietly cmake --install "$build" --strip --prefix "$folder/first"
mv "$folder/first" "$folder/prefix"
libraries=$(dirname "$(find "$folder/prefix" -name libtaiyen.a)")
"$here/use.sh" "$libraries" -DCMAKE_PREFIX_PATH="$folder/prefix"
for version in 0.0 0.2 1.0; do # before 1.0, another minor version is another library
    ! cmake -S "$here/outside" -B "$folder/$version" -DCMAKE_PREFIX_PATH="$folder/prefix" -DWANTED=$version \
        >"$folder/log" 2>&1 || fail "version $version was found"
    grep -q "not compatible\|not considered\|not accepted" "$folder/log" || { cat "$folder/log"; fail "no version was looked at"; }
done

# Without the compressors' development files the shared pack library is found, the static one with a text that says why.
found=none
for component in pack pack_shared; do
    mkdir "$folder/$component"
    printf 'cmake_minimum_required(VERSION 3.25)\nproject(p C)\nfind_package(taiyen REQUIRED COMPONENTS %s)\n' $component \
        >"$folder/$component/CMakeLists.txt"
    PKG_CONFIG_LIBDIR=/nowhere cmake -S "$folder/$component" -B "$folder/$component/build" \
        -DCMAKE_PREFIX_PATH="$folder/prefix" >"$folder/$component/log" 2>&1 && found=$component || true
done
[ "$found" = pack_shared ] || { cat "$folder"/pack*/log; fail "component found: $found"; }
grep -q "taiyen::pack needs pkg-config and liblz4" "$folder/pack/log" || { cat "$folder/pack/log"; fail "nobody says what is missing"; }

# Where nothing of it is installed, the core is found, and the pack library with a text.
mkdir "$folder/core"
cp -a "$folder/prefix/." "$folder/core"
find "$folder/core" -name 'taiyen-pack*' -delete
! cmake -S "$folder/pack_shared" -B "$folder/pack_shared/core" -DCMAKE_PREFIX_PATH="$folder/core" >"$folder/log" 2>&1 ||
    fail "a pack library was found that is not there"
grep -q "without its package pack" "$folder/log" || { cat "$folder/log"; fail "nobody says that it is missing"; }
sed -i 's/COMPONENTS.*)/)/' "$folder/pack_shared/CMakeLists.txt"
quietly cmake -S "$folder/pack_shared" -B "$folder/pack_shared/without" -DCMAKE_PREFIX_PATH="$folder/core"

# The public headers and nothing else of ours; licences, manual pages; nothing for debuggers.
diff <(cd "$source" && find include packages/*/include packages/*/*/include -type f -printf './%P\n' | sort) <(cd "$folder/prefix/include" && find . -type f | sort)
for file in LICENSE NOTICE CHANGELOG.md; do
    cmp "$source/$file" "$folder/prefix/share/doc/taiyen/$file"
done
diff <(cd "$source/docs/man" && ls) <(cd "$folder/prefix/share/man" && find . -type f -printf '%f\n' | sort)
"$folder/prefix/bin/taiyen" --version
for file in "$folder/prefix/bin/taiyen" "$libraries"/lib*; do
    ! readelf -SW "$file" | grep -F .debug_ || fail "$file is not stripped"
done

# 2. Folders as distributions have them. Only configured: the libraries are those of the build.
for folders in "lib/x86_64-linux-gnu include" "lib64 include/of/it" "$folder/elsewhere/lib $folder/elsewhere/include"; do
    read -r lib include <<<"$folders"
    rm -rf "$folder/other" "$folder/build"
    quietly cmake -S "$source" -B "$folder/build" -DTAIYEN_BUILD_CLI=OFF -DTAIYEN_BUILD_BENCH=OFF \
        -DTAIYEN_BUILD_EXAMPLES=OFF -DTAIYEN_BUILD_TESTS=OFF -DCMAKE_INSTALL_PREFIX="$folder/other" \
        -DCMAKE_INSTALL_LIBDIR="$lib" -DCMAKE_INSTALL_INCLUDEDIR="$include"
    mkdir -p "$folder/build/lib"
    cp -a "$build"/lib/libtaiyen* "$folder/build/lib"
    quietly cmake --install "$folder/build"
    if [ "${lib#/}" = "$lib" ]; then
        mv "$folder/other" "$folder/moved"
        lib=$folder/moved/$lib
    fi
    "$here/use.sh" "$lib" -Dtaiyen_DIR="$lib/cmake/taiyen"
    rm -rf "$folder/moved"
done

# 3. The loader. Stand-ins say which folders its cache covers, who the user is, and that the cache was made.
mkdir "$folder/stand-ins"
cat >"$folder/stand-ins/ldconfig" <<'END'
#!/bin/sh
case $* in *-N*) printf '/lib: (from <builtin>:0)\n\tlibc.so.6\n%s: (from a.conf:1)\n' "$COVERED" ;; *) echo made >"$MADE" ;; esac
END
printf '#!/bin/sh\necho "$USER_ID"\n' >"$folder/stand-ins/id"
chmod +x "$folder/stand-ins"/*
export COVERED MADE=$folder/made USER_ID
report() { # USER_ID COVERED [VARIABLE=VALUE]: what the installation says
    rm -f "$MADE"
    USER_ID=$1 COVERED=$2
    env PATH="$folder/stand-ins:$PATH" "${@:3}" cmake --install "$build" --prefix "$folder/root" >"$folder/log" 2>&1
}
covered=$folder/root/${libraries#"$folder/prefix/"}
report 0 "$covered" && [ -e "$MADE" ] || fail "ldconfig was not run"
report 1000 "$covered" && [ ! -e "$MADE" ] && grep -q "Run ldconfig as an administrator" "$folder/log" ||
    fail "a user is not advised to run ldconfig"
report 0 /elsewhere && [ ! -e "$MADE" ] && grep -q "does not look in $covered: set LD_LIBRARY_PATH" "$folder/log" ||
    fail "nobody is warned of a folder that the loader does not know"
report 0 "$covered" DESTDIR="$folder/package" && [ ! -e "$MADE" ] && ! grep -q loader "$folder/log" ||
    fail "ldconfig was run for a package"

# 4. Where the documents say the drop-in malloc is, there it is.
env DESTDIR="$folder/system" cmake --install "$build" --prefix /usr/local >"$folder/log"
reported=$(grep -ohE 'LD_PRELOAD=/[^ ]*' "$source/README.md" "$source"/docs/*.md "$source"/docs/*/*.md | sort -u)
[ -n "$reported" ] || fail "the documents name no installed library for LD_PRELOAD"
for path in ${reported//LD_PRELOAD=/}; do
    [ -e "$folder/system$path" ] || fail "the documents say $path, which make install does not make"
done
echo "installed, moved and used from outside"
