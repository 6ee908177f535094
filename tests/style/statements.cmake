# cmake -DROOT=<source folder> -DCHECK=<rankc_style> -P statements.cmake
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/files.cmake")
execute_process(COMMAND "${CHECK}" ${files} WORKING_DIRECTORY "${ROOT}" COMMAND_ERROR_IS_FATAL ANY)
