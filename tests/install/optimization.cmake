# cmake -DPROJECTS=<tests/install> -DMODULE=<rankc_program.cmake> -DRANKC_SOURCE=<rankc> -DBUILD=<folder> -DOPTIONS=<list>
#       -P optimization.cmake
#
# A project that asks for no optimization gets -O2 and a status line. The flags of every other project hold. No compiler runs:
# the test reads the commands.
cmake_minimum_required(VERSION 3.25)
set(ENV{LC_ALL} C)
set(ENV{CXXFLAGS} "")
set(line "rankc: CMAKE_BUILD_TYPE is empty and CMAKE_CXX_FLAGS has no -O")

# Configures a project. Sets `printed`, and `commands` to the content of compile_commands.json.
function(configure project)
  file(REMOVE_RECURSE "${BUILD}")
  execute_process(COMMAND ${CMAKE_COMMAND} -S "${PROJECTS}/${project}" -B "${BUILD}" ${OPTIONS} ${ARGN}
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON OUTPUT_VARIABLE printed ERROR_VARIABLE printed RESULT_VARIABLE rc)
  if(NOT rc EQUAL 0)
    message(FATAL_ERROR "configuring ${project} ended with ${rc}:\n${printed}")
  endif()
  file(READ "${BUILD}/compile_commands.json" commands)
  set(printed "${printed}" PARENT_SCOPE)
  set(commands "${commands}" PARENT_SCOPE)
endfunction()

# Sets `found` to "<file>:<its -O options>" of each command whose file matches.
function(optimizations files)
  string(JSON count LENGTH "${commands}")
  math(EXPR last "${count} - 1")
  set(found)
  foreach(i RANGE ${last})
    string(JSON path GET "${commands}" ${i} file)
    if(path MATCHES "${files}")
      string(JSON command GET "${commands}" ${i} command)
      string(REGEX MATCHALL " -O[^ ]*" given "${command}")
      list(JOIN given "" given)
      list(APPEND found "${path}:${given}")
    endif()
  endforeach()
  set(found "${found}" PARENT_SCOPE)
endfunction()

# The program of a project with these settings is compiled with `wanted`; `lines` status lines are printed.
function(compares wanted lines)
  configure(names "-DRANKC_MODULE=${MODULE}" -DPLAN=plans.hpp -DNAME=my::gpt ${ARGN})
  optimizations("gpt_program/program.cpp$")
  string(REGEX MATCHALL "${line}" told "${printed}")
  list(LENGTH told count)
  if(NOT found STREQUAL "${BUILD}/gpt_program/program.cpp:${wanted}" OR NOT count EQUAL lines)
    message(SEND_ERROR "${ARGN}: expected ${lines} lines and \"${wanted}\", not ${count} and \"${found}\":\n${printed}")
  endif()
endfunction()

compares(" -O2" 1)
compares(" -O0" 0 -DCMAKE_CXX_FLAGS=-O0)
compares(" -Og" 0 "-DCMAKE_CXX_FLAGS=-g -Og")
compares(" -O3" 0 -DCMAKE_BUILD_TYPE=Release)
compares("" 0 -DCMAKE_BUILD_TYPE=Debug)

# rankc as a subproject: each of its sources is optimized, and the status line is printed once.
configure(add_subdirectory "-DRANKC_SOURCE=${RANKC_SOURCE}" -DRANKC_CUDA=OFF)
string(REGEX MATCHALL "${line}" told "${printed}")
list(LENGTH told count)
if(NOT count EQUAL 1)
  message(SEND_ERROR "add_subdirectory: expected one status line, but configuring prints:\n${printed}")
endif()
optimizations(".")
list(FILTER found EXCLUDE REGEX "/(gpt_rankc|embed)\\.cpp:")  # the generator has -O0, and embed.cpp is no part of rankc
list(LENGTH found sources)
list(FILTER found EXCLUDE REGEX ": -O2")
if(sources LESS 20 OR found)
  message(SEND_ERROR "add_subdirectory: of ${sources} sources these are not compiled with -O2: ${found}")
endif()
