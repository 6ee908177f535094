# cmake -DPROJECT=<names> -DMODULE=<rankc_program.cmake> -DBUILD=<folder> -DOPTIONS=<list>
#       "-DCOMPILER=<compiler and flags>" [-DEVERY=ON] -P names.cmake
#
# CMake refuses a wrong PLAN or NAME in one sentence when the project is configured. A mistake that only the compiler can find
# gives an error on a line that names the program. With EVERY a generator is compiled for every valid name, else for one of the
# file itself and one of a file that it includes.
cmake_minimum_required(VERSION 3.25)
set(ENV{LC_ALL} C)
file(REMOVE_RECURSE "${BUILD}")
set(compared 0)
function(configure plan name)
  execute_process(COMMAND ${CMAKE_COMMAND} -S "${PROJECT}" -B "${BUILD}" ${OPTIONS} "-DRANKC_MODULE=${MODULE}"
    -DPLAN=${plan} -DNAME=${name}
    OUTPUT_VARIABLE out ERROR_VARIABLE out RESULT_VARIABLE rc)
  string(REGEX REPLACE "[ \n]+" " " out "${out}")  # CMake wraps its lines
  set(out "${out}" PARENT_SCOPE)
  set(rc ${rc} PARENT_SCOPE)
  math(EXPR compared "${compared} + 1")
  set(compared ${compared} PARENT_SCOPE)
endfunction()

function(refused plan name sentence)
  configure(${plan} ${name})
  string(FIND "${out}" "add_rankc_program(gpt): ${sentence} " found)
  if(rc EQUAL 0 OR found EQUAL -1)
    message(SEND_ERROR "PLAN ${plan} NAME ${name}: expected: ${sentence}\nbut configuring says:\n${out}")
  endif()
  set(compared ${compared} PARENT_SCOPE)
endfunction()

# Configures the project. Then the compiler accepts the generator's source, or prints `sentence` within its
# first lines.
function(compiled plan name sentence)
  configure(${plan} ${name})
  if(NOT rc EQUAL 0)
    message(SEND_ERROR "PLAN ${plan} NAME ${name}: configuring ends with ${rc}:\n${out}")
  endif()
  execute_process(COMMAND ${COMPILER} "-I${PROJECT}" "-I${PROJECT}/../.." -fsyntax-only "${BUILD}/gpt_rankc.cpp"
    ERROR_VARIABLE said RESULT_VARIABLE failed)
  string(SUBSTRING "${said}" 0 600 said)
  string(FIND "${said}" "${sentence}" found)
  if((failed AND sentence STREQUAL "") OR found EQUAL -1)
    message(SEND_ERROR "PLAN ${plan} NAME ${name}: expected: ${sentence}\nbut the compiler says:\n${said}")
  endif()
  set(compared ${compared} PARENT_SCOPE)
endfunction()

set(all "it declares outermost, my::gpt, my::small::tiny::gpt, my::included")
refused(plans.hpp my::gtp "NAME my::gtp is no plan that plans.hpp declares; ${all}")
refused(plans.hpp your::gpt "NAME your::gpt is no plan that plans.hpp declares; ${all}")
refused(plans.hpp gpt "NAME gpt is no plan that plans.hpp declares; ${all}")
refused(included.hpp my::gpt "NAME my::gpt is no plan that included.hpp declares; it declares my::included")
refused(plan.hpp my::gpt "PLAN plan.hpp is no file in ${PROJECT}, which has elsewhere.hpp, included.hpp, plans.hpp")
set(names my::gpt my::included)
if(EVERY)
  list(APPEND names ::my::gpt my::small::tiny::gpt my::made outermost)
endif()
foreach(name IN LISTS names)
  compiled(plans.hpp ${name} "")
endforeach()
compiled(elsewhere.hpp my::included "")
compiled(elsewhere.hpp my::gtp "// add_rankc_program(gpt): NAME must be a constexpr plan that elsewhere.hpp declares")
compiled(plans.hpp my::model "add_rankc_program(gpt): NAME my::model is not a rankc::plan")
list(LENGTH names expected)
math(EXPR expected "${expected} + 8")
if(NOT compared EQUAL expected)
  message(SEND_ERROR "${compared} names were compared; expected ${expected}")
endif()
