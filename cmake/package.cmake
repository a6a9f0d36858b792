# A package's library: on the core's public API, with the C++ run-time library and what else it needs; a program that does
# not use the package links none of these. It is built in this tree, or alone on an installed core.

# taiyen_package(NAME DESCRIPTION text [HEADERS packages ...] [PACKAGES packages ...] [MODULES pkg-config's ...]
#                [DEFINITIONS ...] SOURCES ...)
#
# makes taiyen_NAME (static) and taiyen_NAME_shared of one object library, taiyen_NAME_objects, with the exports.map and the
# folder include beside its CMakeLists.txt, and installs them. The package's own headers include those of HEADERS.
function(taiyen_package name)
  cmake_parse_arguments(package "" "DESCRIPTION" "HEADERS;PACKAGES;MODULES;DEFINITIONS;SOURCES" ${ARGN})
  set(root ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/..)
  set(modules)
  foreach(module ${package_MODULES})
    taiyen_module(${module} found REQUIRED)
    list(APPEND modules ${found})
  endforeach()

  add_library(taiyen_${name}_objects OBJECT ${package_SOURCES})
  target_compile_definitions(taiyen_${name}_objects PRIVATE ${package_DEFINITIONS})
  target_compile_options(taiyen_${name}_objects PRIVATE -fvisibility=hidden
                         $<$<BOOL:${TAIYEN_BUILD_FUZZERS}>:-fsanitize=fuzzer-no-link>)
  target_include_directories(taiyen_${name}_objects PRIVATE ${root} include ${TAIYEN_XXHASH_INCLUDE})
  list(TRANSFORM package_HEADERS PREPEND taiyen:: OUTPUT_VARIABLE headers)
  list(TRANSFORM package_PACKAGES PREPEND taiyen:: OUTPUT_VARIABLE static)
  list(TRANSFORM static APPEND _shared OUTPUT_VARIABLE shared)
  target_link_libraries(taiyen_${name}_objects PRIVATE taiyen::taiyen ${headers} ${static} ${modules})

  add_library(taiyen_${name} STATIC $<TARGET_OBJECTS:taiyen_${name}_objects>)
  target_link_libraries(taiyen_${name} PUBLIC taiyen::taiyen ${headers} PRIVATE ${static} ${modules} ${TAIYEN_CXX_RUNTIME})
  add_library(taiyen_${name}_shared SHARED $<TARGET_OBJECTS:taiyen_${name}_objects>)
  target_link_libraries(taiyen_${name}_shared PUBLIC taiyen::shared ${headers} PRIVATE ${shared} ${modules})
  foreach(library taiyen_${name} taiyen_${name}_shared)
    target_include_directories(${library} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endforeach()
  set_target_properties(taiyen_${name} PROPERTIES OUTPUT_NAME taiyen-${name} EXPORT_NAME ${name})
  set_target_properties(taiyen_${name}_shared PROPERTIES OUTPUT_NAME taiyen-${name} EXPORT_NAME ${name}_shared
                        VERSION ${TAIYEN_VERSION} SOVERSION ${TAIYEN_SOVERSION}
                        INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ${PROJECT_IS_TOP_LEVEL} # the core lies beside it
                        LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/exports.map)
  target_link_options(taiyen_${name}_shared PRIVATE -Wl,--as-needed
                      -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/exports.map)
  if(NOT TAIYEN_SANITIZE) # whose functions are in the program; all other symbols are of the core's public API
    target_link_options(taiyen_${name}_shared PRIVATE -Wl,-z,defs)
  endif()
  add_library(taiyen::${name} ALIAS taiyen_${name})
  add_library(taiyen::${name}_shared ALIAS taiyen_${name}_shared)
  if(TAIYEN_INSTALL)
    taiyen_install_package(${name} "${package_DESCRIPTION}" "${package_HEADERS}" "${package_PACKAGES}" "${package_MODULES}")
  endif()
endfunction()

# taiyen_headers(NAME): the same of a package that is headers alone, in include/: taiyen_NAME.
function(taiyen_headers name)
  add_library(taiyen_${name} INTERFACE)
  target_include_directories(taiyen_${name} INTERFACE $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(taiyen_${name} PROPERTIES EXPORT_NAME ${name})
  add_library(taiyen::${name} ALIAS taiyen_${name})
  if(TAIYEN_INSTALL)
    taiyen_install_targets(${name} "" taiyen_${name})
    install(DIRECTORY include/taiyen DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  endif()
endfunction()

# taiyen_module(MODULE>=VERSION TARGET [REQUIRED]): a library that pkg-config knows; TARGET is empty where it is not found.
function(taiyen_module module target)
  find_package(PkgConfig REQUIRED)
  string(REGEX MATCH "^[a-z0-9]+" name ${module})
  string(TOUPPER TAIYEN_${name} prefix)
  pkg_check_modules(${prefix} ${ARGN} QUIET IMPORTED_TARGET GLOBAL ${module})
  set(${target} "")
  if(TARGET PkgConfig::${prefix})
    set(${target} PkgConfig::${prefix})
  endif()
  set(${target} ${${target}} PARENT_SCOPE)
endfunction()

find_path(TAIYEN_XXHASH_INCLUDE xxhash.h REQUIRED) # header-only use; nothing is linked
string(REGEX MATCH "^(0\\.[0-9]+|[1-9][0-9]*)" TAIYEN_SOVERSION ${TAIYEN_VERSION}) # docs/versions.md
# In a project that enables C alone, CMake does not add the C++ run-time library to a link; so static libraries name it.
set(TAIYEN_CXX_RUNTIME "")
foreach(library stdc++ c++)
  if(library IN_LIST CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)
    list(APPEND TAIYEN_CXX_RUNTIME ${library})
  endif()
endforeach()
