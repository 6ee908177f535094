# The facts of each row that the check of equivalence trusts, against the kernels of both targets. A row without facts, or
# without tests, fails the build.
set(laws rows/row.cpp rows/parts.cpp rows/machine.cpp rows/chunks.cpp rows/operands.cpp rows/definition.cpp
  rows/derivative.cpp rows/storage.cpp rows/shift.cpp)
add_executable(rankc_rows_test rows/collectives_test.cpp rows/coverage_test.cpp rows/host_test.cpp ${laws})
target_link_libraries(rankc_rows_test PRIVATE rankc::equivalence rankc::dsl rankc_runtime_host rankc_test_main)
add_custom_command(TARGET rankc_rows_test POST_BUILD COMMAND rankc_rows_test "--test-case=coverage:*" --minimal)
add_test(NAME rows COMMAND rankc_rows_test)
