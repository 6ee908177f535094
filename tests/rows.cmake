# Tests the facts of each row that the check of equivalence trusts, with the kernels of both targets. A row
# without facts, or without tests, fails the build.
add_library(rankc_row_laws STATIC rows/row.cpp rows/parts.cpp rows/machine.cpp rows/chunks.cpp rows/operands.cpp
  rows/definition.cpp rows/derivative.cpp rows/storage.cpp rows/shared_sequences.cpp rows/ring.cpp rows/shift.cpp
  rows/fp8.cpp rows/slots.cpp)
target_link_libraries(rankc_row_laws PUBLIC rankc::equivalence rankc::dsl rankc_test_options)

add_executable(rankc_rows_test rows/collectives_test.cpp rows/coverage_test.cpp rows/host_test.cpp rows/optimizer_test.cpp rows/slots_test.cpp)
target_link_libraries(rankc_rows_test PRIVATE rankc_row_laws rankc::codegen rankc_runtime_host rankc_test_host_main)
add_custom_command(TARGET rankc_rows_test POST_BUILD COMMAND rankc_rows_test "--test-case=coverage:*" --minimal)
set_target_properties(rankc_row_laws rankc_rows_test PROPERTIES computes ON)
add_test(NAME rows COMMAND rankc_rows_test)
rankc_every_mutant(rows rankc_rows_test "parts of axes,linear operands*,sums*,in place,adding,the loss does*,definitions")

if(TARGET rankc::runtime_cuda)
  rankc_cuda_test(rows_cuda 1 rows/cuda_test.cpp)
  target_link_libraries(rows_cuda PRIVATE rankc_row_laws rankc_runtime_host)
endif()
