# A package that is built by itself, on an installed core and the packages that `components` names: what the tree's
# CMakeLists.txt does else.
find_package(taiyen REQUIRED COMPONENTS ${components})
set(TAIYEN_VERSION ${taiyen_VERSION})
option(TAIYEN_INSTALL "Install what is built" ON)
set(TAIYEN_BUILD_TESTS OFF) # they look into the core's files and need its simulated disk
set(CMAKE_C_STANDARD 11)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, RelWithDebInfo, Release" FORCE)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/install.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/package.cmake)
