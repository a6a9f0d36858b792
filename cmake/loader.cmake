# After an installation: the loader gets to know the shared libraries, or the user what to do so that it finds them. A folder
# for packaging (DESTDIR) is not for this system's loader.
if(NOT "$ENV{DESTDIR}" STREQUAL "")
  return()
endif()
set(folder "${TAIYEN_LIBDIR}")
cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" NORMALIZE)

find_program(ldconfig ldconfig PATHS /sbin /usr/sbin NO_CACHE)
if(NOT ldconfig) # a system whose loader has no cache
  return()
endif()
# The folders that the loader's cache covers, a line each that begins with the folder; nothing is changed by this call.
execute_process(COMMAND "${ldconfig}" -v -N -X OUTPUT_VARIABLE listed ERROR_QUIET)
string(REGEX MATCHALL "(^|\n)/[^:\n]*" searched "${listed}")
list(TRANSFORM searched STRIP)
file(REAL_PATH "${folder}" real_folder)
set(covered FALSE)
foreach(one IN LISTS searched)
  file(REAL_PATH "${one}" one)
  if(one STREQUAL real_folder)
    set(covered TRUE)
  endif()
endforeach()

if(NOT covered)
  message(STATUS "The loader does not look in ${folder}: set LD_LIBRARY_PATH=${folder}, link programs with "
                 "-Wl,-rpath,${folder}, or name the folder in a file of /etc/ld.so.conf.d and run ldconfig")
  return()
endif()
execute_process(COMMAND id -u OUTPUT_VARIABLE user OUTPUT_STRIP_TRAILING_WHITESPACE)
if(user STREQUAL 0)
  message(STATUS "Telling the loader: ${ldconfig}")
  execute_process(COMMAND "${ldconfig}" COMMAND_ERROR_IS_FATAL ANY)
else()
  message(STATUS "Run ldconfig as an administrator: then the loader finds the libraries in ${folder}")
endif()
