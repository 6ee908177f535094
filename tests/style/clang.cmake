# cmake -DROOT=<source folder> -DBUILT=<build folder> -DOUT=<folder> -DCLANG=<clang++> [-DONLY=<regular expression>] -P clang.cmake
#
# Checks that clang compiles every source without an error or a warning. CMake is configured in OUT with clang, for its commands. They
# are run with -fsyntax-only in BUILT, where the generators have written the programs of tests. Sources that are not built there are
# counted and left out. ONLY restricts the sources, by their paths in ROOT.
cmake_minimum_required(VERSION 3.25)
load_cache("${BUILT}" READ_WITH_PREFIX built_ CMAKE_UNITY_BUILD_BATCH_SIZE CMAKE_BUILD_TYPE RANKC_INJECT)
execute_process(COMMAND ${CMAKE_COMMAND} -S "${ROOT}" -B "${OUT}" -G Ninja "-DCMAKE_CXX_COMPILER=${CLANG}" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
    "-DCMAKE_BUILD_TYPE=${built_CMAKE_BUILD_TYPE}" "-DCMAKE_UNITY_BUILD_BATCH_SIZE=${built_CMAKE_UNITY_BUILD_BATCH_SIZE}"
    "-DRANKC_INJECT=${built_RANKC_INJECT}" -DRANKC_CUDA=OFF -DRANKC_WERROR=ON
  OUTPUT_FILE "${OUT}.log" ERROR_FILE "${OUT}.log" COMMAND_ERROR_IS_FATAL ANY)

# The sources of a compile command: those that a unit of a unity build includes, or the source itself.
function(sources_of file result)
  set(sources "${file}")
  if(file MATCHES "/Unity/unity_")
    file(STRINGS "${file}" sources REGEX "^#include ")
    list(TRANSFORM sources REPLACE "^#include \"(.*)\"$" "\\1")
  endif()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

file(READ "${OUT}/compile_commands.json" text)
string(REPLACE "${OUT}/" "${BUILT}/" text "${text}")
string(JSON last LENGTH "${text}")
math(EXPR last "${last} - 1")
set(lines)
set(checked 0)
set(left_out 0)
foreach(i RANGE ${last})
  string(JSON file GET "${text}" ${i} file)
  string(JSON command GET "${text}" ${i} command)
  sources_of("${file}" sources)
  set(is_built TRUE)
  set(is_asked FALSE)
  foreach(source IN LISTS sources)
    if(NOT EXISTS "${source}")
      set(is_built FALSE)
    endif()
    file(RELATIVE_PATH path "${ROOT}" "${source}")
    if(path MATCHES "${ONLY}")
      set(is_asked TRUE)
    endif()
  endforeach()
  list(LENGTH sources count)
  if(NOT is_asked)
    continue()
  elseif(NOT is_built)
    math(EXPR left_out "${left_out} + ${count}")
    continue()
  endif()
  math(EXPR checked "${checked} + ${count}")
  string(REGEX REPLACE " -o [^ ]+ " " -fsyntax-only " command "${command}")
  string(APPEND lines "${command}\n")
endforeach()
file(WRITE "${OUT}/commands.txt" "${lines}")

execute_process(COMMAND xargs -a "${OUT}/commands.txt" -d "\\n" -n 1 -P 2 sh -c WORKING_DIRECTORY "${BUILT}"
  ERROR_VARIABLE said RESULT_VARIABLE code)
string(REGEX MATCHALL " error: " errors "${said}")
string(REGEX MATCHALL " warning: " warnings "${said}")
list(LENGTH errors errors)
list(LENGTH warnings warnings)
message(STATUS "${checked} sources, ${errors} errors, ${warnings} warnings; ${left_out} sources are not built and left out")
if(code OR warnings GREATER 0)
  message(FATAL_ERROR "${said}")
elseif(checked EQUAL 0)
  message(FATAL_ERROR "no source is checked")
endif()
