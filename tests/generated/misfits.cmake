# cmake -DCXX=<compiler> -DRUNTIME=<include folder> -DCOMMITTED=<folder> -DSCRATCH=<folder> -P misfits.cmake
# A generated program in which an operand has another shape or another kind does not compile.
cmake_minimum_required(VERSION 3.25)
file(READ "${COMMITTED}/layers.hpp" layers)
set(faults
  ".w = w.wo|.w = w.w1"                     # the weights of another product
  ".y = down, .x = s.act|.y = down, .x = s.h2"  # another width
  ".to = s.h1|.to = s.x_mid"                # not gathered
  ".y = n1, .statistics = s.n1_statistics|.y = s.n1_statistics, .statistics = n1"  # a result for another
  ".db = dw.w2_bias|.db = w.w2_bias + 4")   # a byte offset
list(PREPEND faults "a|a")  # as it is

# The headers of the runtime take most of the time. They are compiled once.
set(header "${SCRATCH}_headers.hpp")
file(WRITE "${header}" "#include <rankc/runtime/calls.hpp>
#include <rankc/runtime/host/kernels.hpp>
#include <rankc/runtime/host/rank.hpp>
#include <rankc/runtime/proven.hpp>
")
set(compile "${CXX}" -std=c++20 -I "${RUNTIME}")
execute_process(COMMAND ${compile} -x c++-header "${header}" -o "${header}.gch" COMMAND_ERROR_IS_FATAL ANY)
set(count 0)
foreach(fault IN LISTS faults)
  string(REPLACE "|" ";" sides "${fault}")
  list(GET sides 0 right)
  list(GET sides 1 wrong)
  string(FIND "${layers}" "${right}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "the program has no '${right}'")
  endif()
  file(REMOVE_RECURSE "${SCRATCH}")
  file(COPY "${COMMITTED}/" DESTINATION "${SCRATCH}")
  string(REPLACE "${right}" "${wrong}" text "${layers}")
  file(WRITE "${SCRATCH}/layers.hpp" "${text}")
  execute_process(COMMAND ${compile} -include "${header}" -fsyntax-only "${SCRATCH}/program.cpp" RESULT_VARIABLE rc ERROR_VARIABLE said)
  if(right STREQUAL wrong AND NOT rc EQUAL 0)
    message(FATAL_ERROR "the program does not compile as it is:\n${said}")
  elseif(NOT right STREQUAL wrong AND rc EQUAL 0)
    message(SEND_ERROR "'${wrong}' in place of '${right}' compiles")
  endif()
  math(EXPR count "${count} + 1")
endforeach()
message(STATUS "${count} programs compiled or refused")
