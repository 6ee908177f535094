# cmake -DFOLDER=<dsl> "-DCOMPILER=<compiler and flags>" -DOUT=<folder> -DNAME=<name> -P headers.cmake
#
# All headers of the language compile together, in the order of their names and in reverse order. Each header
# in dsl/headers_alone compiles as the first of a file.
cmake_minimum_required(VERSION 3.25)
file(GLOB_RECURSE headers RELATIVE "${FOLDER}" "${FOLDER}/rankc/*.hpp")
list(SORT headers)
list(LENGTH headers count)
if(count LESS 60)
  message(FATAL_ERROR "only ${count} headers found in ${FOLDER}/rankc")
endif()

file(REMOVE_RECURSE "${OUT}")
set(sources "${OUT}/all.cpp" "${OUT}/reversed.cpp")
set(all)
set(reversed)
foreach(header IN LISTS headers)
  string(MAKE_C_IDENTIFIER "${header}" name)
  if(NAME STREQUAL "dsl/headers_alone")
    file(WRITE "${OUT}/${name}.cpp" "#include <${header}>\n")
    list(APPEND sources "${OUT}/${name}.cpp")
  endif()
  string(APPEND all "#include <${header}>\n")
  string(PREPEND reversed "#include <${header}>\n")
endforeach()
file(WRITE "${OUT}/all.cpp" "${all}")
file(WRITE "${OUT}/reversed.cpp" "${reversed}")
execute_process(COMMAND ${COMPILER} -fsyntax-only ${sources}
  ERROR_VARIABLE said RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "of ${count} headers, some do not compile as they are included:\n${said}")
endif()
message(STATUS "${count} headers compile")
