# cmake -DSOURCE=<file> "-DCOMPILER=<compiler and flags>" -P compile_time.cmake
#
# What searches add to the processor's time that a file takes to compile, each at its quickest of three.
cmake_minimum_required(VERSION 3.25)

# In ms: the shell tells of its children "0m1.230000s 0m0.050000s", of the user and of the system.
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
