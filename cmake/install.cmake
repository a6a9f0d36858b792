# What `cmake --install` installs of the core and of each package that is built: headers, libraries (static and shared), a CMake
# package with a component a package, files for pkg-config. tests/install uses them from outside.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(TAIYEN_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/taiyen)

# pkg-config's files find folders from their own place, so that an installation can be moved; a folder that was given whole
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

# `cmake --install --strip` strips programs and shared libraries by itself; of static ones, what is for debuggers goes.
function(taiyen_install_static library)
  install(CODE "
    if(CMAKE_INSTALL_DO_STRIP)
      cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_PREFIX OUTPUT_VARIABLE prefix)
      set(folder \"${CMAKE_INSTALL_LIBDIR}\")
      cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY \"\${prefix}\")
      execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug \"\$ENV{DESTDIR}\${folder}/$<TARGET_FILE_NAME:${library}>\"
                      COMMAND_ERROR_IS_FATAL ANY)
    endif()")
endfunction()

# taiyen_install_pc(NAME): NAME.pc of NAME.pc.in, where that is, else of package.pc.in.
function(taiyen_install_pc name)
  set(template ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${name}.pc.in)
  if(NOT EXISTS ${template})
    set(template ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/package.pc.in)
  endif()
  configure_file(${template} ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# What `make install` builds: no tests, no benchmarks, no examples.
function(taiyen_installs)
  if(NOT TARGET taiyen_installed)
    add_custom_target(taiyen_installed)
  endif()
  add_dependencies(taiyen_installed ${ARGN})
endfunction()

# taiyen_install_targets(COMPONENT NEEDS targets ...): with a file for find_package, which first looks for what they need:
# packages and pkg-config's modules.
function(taiyen_install_targets component needs)
  string(MAKE_C_IDENTIFIER taiyen_${component}_targets export)
  install(TARGETS ${ARGN} EXPORT ${export})
  taiyen_installs(${ARGN})
  install(EXPORT ${export} NAMESPACE taiyen:: FILE taiyen-${component}-targets.cmake DESTINATION ${TAIYEN_CMAKE_DIR})
  file(CONFIGURE OUTPUT taiyen-${component}-needs.cmake CONTENT "set(needs ${needs})\n")
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/taiyen-${component}-needs.cmake DESTINATION ${TAIYEN_CMAKE_DIR})
endfunction()

# What taiyen_package() installs. The two libraries are exported apart: only the static one needs more than the package has.
function(taiyen_install_package name description headers packages modules)
  list(TRANSFORM packages APPEND _shared OUTPUT_VARIABLE shared)
  taiyen_install_targets(${name}_shared "${headers};${shared}" taiyen_${name}_shared)
  taiyen_install_targets(${name} "${headers};${packages};${modules}" taiyen_${name})
  taiyen_install_static(taiyen_${name})
  install(DIRECTORY include/taiyen DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  set(PC_NAME ${name})
  set(PC_DESCRIPTION "${description}")
  list(TRANSFORM packages REPLACE "(.+)" "taiyen-\\1 = ${TAIYEN_VERSION}")
  list(TRANSFORM modules REPLACE ">=" " >= ")
  set(PC_REQUIRES ${packages} ${modules})
  list(JOIN PC_REQUIRES ", " PC_REQUIRES)
  list(TRANSFORM TAIYEN_CXX_RUNTIME PREPEND "-l" OUTPUT_VARIABLE PC_CXX_RUNTIME) # what a C program needs
  list(JOIN PC_CXX_RUNTIME " " PC_CXX_RUNTIME)
  taiyen_install_pc(taiyen-${name})
endfunction()
