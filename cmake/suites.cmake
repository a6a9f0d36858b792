# Tests: programs of googletest's cases, a program a layer or package.

# The tests' own code is most of what is compiled: debug information is of lines alone, and it is optimised less, half of
# the time less; with sanitizers it is not optimised at all, and its own arithmetic is not looked at.
set(TAIYEN_TEST_OPTIONS "$<$<NOT:$<CONFIG:Debug>>:-O1;-g1>")
if(TAIYEN_SANITIZE)
  set(TAIYEN_TEST_OPTIONS -O0)
  if(TAIYEN_SANITIZE MATCHES undefined)
    list(APPEND TAIYEN_TEST_OPTIONS -fno-sanitize=undefined)
  endif()
endif()

# A test program is a suite: one ctest, or several side by side where it is long. Its cases stay googletest's.
#
# taiyen_suite(NAME PROGRAM [SHARDS n] [FILTER googletest's] [PROPERTIES ...])
function(taiyen_suite name program)
  cmake_parse_arguments(suite "" "SHARDS;FILTER" "PROPERTIES" ${ARGN})
  if(NOT suite_SHARDS)
    set(suite_SHARDS 1)
  endif()
  set(command ${program})
  if(suite_FILTER)
    list(APPEND command --gtest_filter=${suite_FILTER})
  endif()
  foreach(shard RANGE 1 ${suite_SHARDS})
    set(test ${name})
    if(suite_SHARDS GREATER 1)
      set(test ${name}.${shard})
    endif()
    math(EXPR index "${shard} - 1")
    add_test(NAME ${test} COMMAND ${command})
    set_tests_properties(${test} PROPERTIES TIMEOUT 900 COST 30 ${suite_PROPERTIES}
                         ENVIRONMENT "GTEST_TOTAL_SHARDS=${suite_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# taiyen_test(NAME FOLDER SHARDS [LIBRARIES ...]): builds the sources in a folder, and in the folders in it, into test_NAME, a
# suite. Sources of the variable TAIYEN_NOT_CASES (a regular expression) are programs of their own.
function(taiyen_test name folder shards)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp ${folder}/*/*.cpp)
  if(TAIYEN_NOT_CASES)
    list(FILTER sources EXCLUDE REGEX "${TAIYEN_NOT_CASES}")
  endif()
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE taiyen GTest::gtest GTest::gtest_main ${ARGN})
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(test_${name} PRIVATE ${TAIYEN_TEST_OPTIONS})
  taiyen_compile_together(test_${name})
  taiyen_suite(${name} test_${name} SHARDS ${shards} FILTER "-*_alone.*")
endfunction()
