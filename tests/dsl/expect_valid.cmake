# cmake -DSOURCE=<file> "-DCOMPILER=<compiler and flags>" -P expect_valid.cmake
#
# SOURCE compiles without its faults, so each refusal in expect_errors.cmake is caused by its fault.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${COMPILER} -fsyntax-only "${SOURCE}" ERROR_VARIABLE said RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${SOURCE} does not compile without its faults:\n${said}")
endif()
