# An overlay port of this repository: vcpkg install taiyen --overlay-ports=packaging/vcpkg
# Each build makes the static and the shared library; both are installed, as taiyen::taiyen and taiyen::shared. With the
# feature pack (taiyen[pack]) so is the pack library, as taiyen::pack and taiyen::pack_shared.
set(VCPKG_POLICY_DLLS_IN_STATIC_LIBRARY enabled)
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES pack TAIYEN_BUILD_PACK)
if("pack" IN_LIST FEATURES)
    vcpkg_find_acquire_program(PKGCONFIG)
    list(APPEND features "-DPKG_CONFIG_EXECUTABLE=${PKGCONFIG}")
endif()

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS ${features}
            -DTAIYEN_BUILD_STANDBY=OFF -DTAIYEN_BUILD_CLI=OFF -DTAIYEN_BUILD_BENCH=OFF -DTAIYEN_BUILD_EXAMPLES=OFF -DTAIYEN_BUILD_TESTS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/taiyen)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share"
                    "${CURRENT_PACKAGES_DIR}/share/doc" "${CURRENT_PACKAGES_DIR}/share/man")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE" "${SOURCE_PATH}/NOTICE")
