# cmake -DFOLDER=<this folder> "-DCOMPILER=<compiler and flags>" -DOUT=<file to build> -P compare.cmake
#
# The op lists that this compiler records must equal listing.txt. To accept a change:
#   <OUT> > tests/dsl/listing/listing.txt
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${COMPILER} "${FOLDER}/listing.cpp" -o "${OUT}" RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "listing.cpp does not compile")
endif()
execute_process(COMMAND "${OUT}" OUTPUT_FILE "${OUT}.txt" RESULT_VARIABLE failed)
execute_process(COMMAND diff -u "${FOLDER}/listing.txt" "${OUT}.txt" RESULT_VARIABLE differs)
if(failed OR differs)
  message(FATAL_ERROR "the op lists are not those of listing.txt; if they should be: ${OUT} > ${FOLDER}/listing.txt")
endif()
