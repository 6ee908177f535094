# cmake -DROOT=<source folder> -DLIST=<rankc_messages> -DOUT=<file> -P messages.cmake
#
# codegen/tool/messages.txt is the list of all sentences with an id of runtime/ and codegen/: `rankc explain` reads it.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/files.cmake")
list(FILTER files INCLUDE REGEX "^(runtime|codegen)/")
execute_process(COMMAND "${LIST}" ${files} WORKING_DIRECTORY "${ROOT}" OUTPUT_VARIABLE found COMMAND_ERROR_IS_FATAL ANY)
file(READ "${ROOT}/codegen/tool/messages.txt" committed)
if(NOT found STREQUAL committed)
  file(WRITE "${OUT}" "${found}")
  message(FATAL_ERROR "codegen/tool/messages.txt is not the list of the sources' sentences: compare it with ${OUT}, "
                      "and copy that over it")
endif()
