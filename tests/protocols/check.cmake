# Checks a model with spin: the unchanged model has no fault, and every planted fault is detected. SPIN, CC:
# the tools. MODEL: a file. OUT: a folder. DEFINES: preprocessor definitions. FAULTS: NAME:data or NAME:hang,
# the expected result if the macro is also defined: an assertion on data that fails, or an execution that ends
# early.
cmake_minimum_required(VERSION 3.25)
if(NOT SPIN)
  message("skipped: spin is not installed (Debian: apt-get install spin)")
  return()
endif()
file(REMOVE_RECURSE "${OUT}")
file(MAKE_DIRECTORY "${OUT}")

function(run_model level result)
  set(macros ${DEFINES} ${ARGN})
  list(TRANSFORM macros PREPEND -D)
  execute_process(COMMAND "${SPIN}" ${macros} -a "${MODEL}" WORKING_DIRECTORY "${OUT}" COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
  execute_process(COMMAND ${CC} ${level} -w -DSAFETY -DCOLLAPSE -DMEMLIM=6000 -o pan pan.c WORKING_DIRECTORY "${OUT}"
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ./pan -m1000000 WORKING_DIRECTORY "${OUT}" OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(${result} "${output}" PARENT_SCOPE)
endfunction()

run_model(-O1 output)
if(NOT output MATCHES "errors: 0" OR output MATCHES "MEMLIM bound|max search depth too small|search was aborted")
  message(FATAL_ERROR "the model of ${MODEL} (${DEFINES}) is refuted, or not searched to the end:\n${output}")
endif()
string(REGEX MATCHALL "\\.pml:[0-9]+, state [0-9]+, \"[^\n]*\"" unreached "${output}")
list(FILTER unreached EXCLUDE REGEX "\"-end-\"$")
if(unreached AND NOT "ROUNDS=1" IN_LIST DEFINES)  # one round is a gather or a deal
  message(FATAL_ERROR "parts of ${MODEL} (${DEFINES}) are never reached: ${unreached}")
endif()
string(REGEX MATCH "[0-9.e+]+ states, stored" states "${output}")
string(REGEX MATCH "elapsed time [0-9.e+-]+ seconds" seconds "${output}")
message("${DEFINES}: no fault in ${states}, ${seconds}")

foreach(fault IN LISTS FAULTS)
  string(REPLACE ":" ";" fault "${fault}")
  list(GET fault 0 macro)
  list(GET fault 1 kind)
  run_model(-O0 output ${macro})  # a fault is near
  set(found "assertion violated")
  if(kind STREQUAL "hang")
    set(found "invalid end state")
  endif()
  if(NOT output MATCHES "pan:1: ${found} ")
    message(FATAL_ERROR "${macro} (${kind}) was not found:\n${output}")
  endif()
  message("${macro}: found (${kind})")
endforeach()
