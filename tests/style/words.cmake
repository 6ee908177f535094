# cmake -DROOT=<source folder> -DWORDS=<rankc_words> -P words.cmake
cmake_minimum_required(VERSION 3.25)
set(other_patterns *.md *.cmake *CMakeLists.txt *.py)
include("${CMAKE_CURRENT_LIST_DIR}/files.cmake")
execute_process(COMMAND "${WORDS}" tests/style/words_allowed.txt ${files} WORKING_DIRECTORY "${ROOT}" COMMAND_ERROR_IS_FATAL ANY)
