# What `cmake --install` installs: the public headers, the core, the drop-in malloc and the pack library (static and shared),
# the taiyen program, manual pages, licences, a CMake package and pkg-config files. tests/install uses them from outside.
include(CMakePackageConfigHelpers)

install(TARGETS taiyen taiyen_shared EXPORT taiyen_targets)
set(static_libraries taiyen)
if(TARGET taiyen_malloc)
  install(TARGETS taiyen_malloc taiyen_malloc_static EXPORT taiyen_targets)
  list(APPEND static_libraries taiyen_malloc_static)
endif()
if(TARGET taiyen_pack) # exported apart: a package has them that the core does without, and only the static one needs more
  install(TARGETS taiyen_pack_shared taiyen_ship_shared EXPORT taiyen_pack_targets)
  install(TARGETS taiyen_pack taiyen_ship EXPORT taiyen_pack_static_targets)
  list(APPEND static_libraries taiyen_pack taiyen_ship)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/taiyen DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          FILES_MATCHING PATTERN "pack.h*" PATTERN "*types.h*" PATTERN "ship.h")
endif()
if(TARGET taiyen_standby) # the same, of another package
  install(TARGETS taiyen_standby_shared EXPORT taiyen_standby_targets)
  install(TARGETS taiyen_standby EXPORT taiyen_standby_static_targets)
  list(APPEND static_libraries taiyen_standby)
  install(FILES ${PROJECT_SOURCE_DIR}/include/taiyen/standby.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/taiyen)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/taiyen DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        PATTERN "pack.h*" EXCLUDE PATTERN "*types.h*" EXCLUDE PATTERN "ship.h" EXCLUDE
        PATTERN "standby.h" EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE ${PROJECT_SOURCE_DIR}/CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${PROJECT_SOURCE_DIR}/docs/man/libtaiyen.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
if(TARGET taiyen_malloc)
  install(FILES ${PROJECT_SOURCE_DIR}/docs/man/libtaiyen-malloc.7 DESTINATION ${CMAKE_INSTALL_MANDIR}/man7)
endif()
if(TARGET taiyen_cli)
  install(TARGETS taiyen_cli)
  install(FILES ${PROJECT_SOURCE_DIR}/docs/man/taiyen.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  if(NOT CMAKE_CROSSCOMPILING) # the program itself writes them
    install(FILES ${PROJECT_BINARY_DIR}/completion/taiyen DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
            OPTIONAL)
    install(FILES ${PROJECT_BINARY_DIR}/completion/_taiyen DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions OPTIONAL)
    install(FILES ${PROJECT_BINARY_DIR}/completion/taiyen.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
            OPTIONAL)
  endif()
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/taiyen)
install(EXPORT taiyen_targets NAMESPACE taiyen:: FILE taiyen-targets.cmake DESTINATION ${package_dir})
if(TARGET taiyen_pack)
  install(EXPORT taiyen_pack_targets NAMESPACE taiyen:: FILE taiyen-pack-targets.cmake DESTINATION ${package_dir})
  install(EXPORT taiyen_pack_static_targets NAMESPACE taiyen:: FILE taiyen-pack-static-targets.cmake
          DESTINATION ${package_dir})
endif()
if(TARGET taiyen_standby)
  install(EXPORT taiyen_standby_targets NAMESPACE taiyen:: FILE taiyen-standby-targets.cmake DESTINATION ${package_dir})
  install(EXPORT taiyen_standby_static_targets NAMESPACE taiyen:: FILE taiyen-standby-static-targets.cmake
          DESTINATION ${package_dir})
endif()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/taiyen-config.cmake.in ${PROJECT_BINARY_DIR}/taiyen-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/taiyen-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/taiyen-config.cmake ${PROJECT_BINARY_DIR}/taiyen-config-version.cmake
        DESTINATION ${package_dir})

# pkg-config's files tell folders from their own place, so that an installation can be moved; a folder that was given whole
# stays where it is.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(TAIYEN_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
  set(TAIYEN_PC_PREFIX "\${pcfiledir}/${to_prefix}")
endif()
foreach(folder LIBDIR INCLUDEDIR)
  set(TAIYEN_PC_${folder} "${CMAKE_INSTALL_${folder}}")
  cmake_path(ABSOLUTE_PATH TAIYEN_PC_${folder} BASE_DIRECTORY "\${prefix}")
endforeach()
set(TAIYEN_PC_CXX_RUNTIME "") # what a C program links the static pack library with
if(TARGET taiyen_pack)
  get_directory_property(runtime DIRECTORY ${PROJECT_SOURCE_DIR}/src/pack DEFINITION TAIYEN_CXX_RUNTIME)
  list(TRANSFORM runtime PREPEND "-l" OUTPUT_VARIABLE TAIYEN_PC_CXX_RUNTIME)
  list(JOIN TAIYEN_PC_CXX_RUNTIME " " TAIYEN_PC_CXX_RUNTIME)
endif()
set(TAIYEN_PC_ENGINES "") # what the static standby library is linked with
if(TAIYEN_NATS_FOUND)
  string(APPEND TAIYEN_PC_ENGINES ", libnats >= 3.4")
endif()
if(TAIYEN_KAFKA_FOUND)
  string(APPEND TAIYEN_PC_ENGINES ", rdkafka >= 1.6")
endif()
foreach(package taiyen taiyen-malloc taiyen-pack taiyen-ship taiyen-standby)
  string(MAKE_C_IDENTIFIER ${package} target)
  if(TARGET ${target})
    configure_file(${CMAKE_CURRENT_LIST_DIR}/${package}.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endif()
endforeach()

# `cmake --install --strip` strips programs and shared libraries by itself; of static ones, what is for debuggers goes.
foreach(library ${static_libraries})
  install(CODE "
    if(CMAKE_INSTALL_DO_STRIP)
      cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_PREFIX OUTPUT_VARIABLE prefix)
      set(folder \"${CMAKE_INSTALL_LIBDIR}\")
      cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY \"\${prefix}\")
      execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug \"\$ENV{DESTDIR}\${folder}/$<TARGET_FILE_NAME:${library}>\"
                      COMMAND_ERROR_IS_FATAL ANY)
    endif()")
endforeach()

install(CODE "set(TAIYEN_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\")")
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/tell_loader.cmake)
