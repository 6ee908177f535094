# cmake -DSOURCE=<file> "-DCOMPILER=<compiler and flags>" -P compile_time.cmake
#
# The CPU time that searches add to the compilation of a file, each the minimum of three runs.
cmake_minimum_required(VERSION 3.25)

# Units: ms. The shell prints the user and system time of its children as "0m1.230000s 0m0.050000s".
function(quickest out)
  set(least 1000000000)
  list(JOIN COMPILER " " command)
  foreach(run RANGE 2)
    execute_process(COMMAND sh -c "${command} ${ARGN} -fsyntax-only ${SOURCE} && times"
      OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
    if(NOT said MATCHES "\n([0-9]+)m([0-9]+)\\.([0-9][0-9])[0-9]*s ")
      message(FATAL_ERROR "no times in ${said}")
    endif()
    math(EXPR took "(${CMAKE_MATCH_1} * 60 + ${CMAKE_MATCH_2}) * 1000 + 1${CMAKE_MATCH_3} * 10 - 1000")
    if(took LESS least)
      set(least ${took})
    endif()
  endforeach()
  set(${out} ${least} PARENT_SCOPE)
endfunction()

quickest(without)
foreach(case IN ITEMS "tp1d 300" "seqp 5000" "tp2d 5000")
  separate_arguments(case)
  list(GET case 0 strategy)
  list(GET case 1 most)
  quickest(with -DSEARCH=${strategy})
  math(EXPR added "${with} - ${without}")
  message(STATUS "a ${strategy} search adds ${added} ms")
  if(added GREATER most)
    message(SEND_ERROR "a ${strategy} search adds ${added} ms to the ${without} ms without it; ${most} at most")
  endif()
endforeach()
