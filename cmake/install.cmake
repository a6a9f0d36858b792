# What `cmake --install` installs: the public headers, both libraries, the drop-in malloc, the taiyen program, a CMake
# package and pkg-config files. tests/install uses them from outside.
include(CMakePackageConfigHelpers)

install(TARGETS taiyen taiyen_shared EXPORT taiyen_targets)
if(TARGET taiyen_malloc)
  install(TARGETS taiyen_malloc taiyen_malloc_static EXPORT taiyen_targets)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/taiyen DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET taiyen_cli)
  install(TARGETS taiyen_cli)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/taiyen)
install(EXPORT taiyen_targets NAMESPACE taiyen:: FILE taiyen-targets.cmake DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/taiyen-config.cmake.in ${PROJECT_BINARY_DIR}/taiyen-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/taiyen-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/taiyen-config.cmake ${PROJECT_BINARY_DIR}/taiyen-config-version.cmake
        DESTINATION ${package_dir})

file(RELATIVE_PATH TAIYEN_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
foreach(package taiyen taiyen-malloc)
  if(package STREQUAL taiyen OR TARGET taiyen_malloc)
    configure_file(${CMAKE_CURRENT_LIST_DIR}/${package}.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endif()
endforeach()
