# Measured steps, and the pages that show them.
add_library(rankc_bench_results STATIC bench/results.cpp)
target_compile_definitions(rankc_bench_results PRIVATE RANKC_RESULTS="${CMAKE_CURRENT_SOURCE_DIR}/bench/results")
target_compile_features(rankc_bench_results PUBLIC cxx_std_20)
target_include_directories(rankc_bench_results PUBLIC bench)
target_link_libraries(rankc_bench_results PUBLIC nlohmann_json::nlohmann_json PRIVATE rankc_warnings)
add_executable(rankc_bench_results_test bench/results_test.cpp)
target_compile_definitions(rankc_bench_results_test PRIVATE RANKC_SOURCE="${rankc_SOURCE_DIR}")
target_link_libraries(rankc_bench_results_test PRIVATE rankc_bench_results rankc_test_main fmt::fmt)
add_test(NAME readme/results COMMAND rankc_bench_results_test)

# The planner's cost model, compared with measurements.
add_executable(rankc_cost_model_test cost_model/fastest_test.cpp cost_model/kernels_test.cpp cost_model/others_test.cpp cost_model/plans_test.cpp
  cost_model/published_rows.cpp cost_model/steps_test.cpp)
target_include_directories(rankc_cost_model_test PRIVATE . bench)
target_compile_definitions(rankc_cost_model_test PRIVATE RANKC_COST_MODEL="${CMAKE_CURRENT_SOURCE_DIR}/cost_model"
  RANKC_DSL="${rankc_SOURCE_DIR}/dsl")
target_link_libraries(rankc_cost_model_test PRIVATE rankc_bench_results rankc_tool_commands rankc_experts_plans rankc_sequences_plans rankc_test_main)
add_test(NAME cost_model COMMAND rankc_cost_model_test)
add_test(NAME cost_model_long COMMAND rankc_cost_model_test "--test-case=bounds prune nothing*")
set_tests_properties(cost_model_long PROPERTIES LABELS long TIMEOUT 7200 ENVIRONMENT RANKC_PROBLEMS=1000)

# A search and predictions at compile time.
add_executable(rankc_cost_model_compiled_test EXCLUDE_FROM_ALL cost_model/while_compiling_test.cpp)
target_link_libraries(rankc_cost_model_compiled_test PRIVATE rankc::dsl rankc_test_main)
add_test(NAME cost_model/while_compiling_build
  COMMAND ${CMAKE_COMMAND} --build "${PROJECT_BINARY_DIR}" --target rankc_cost_model_compiled_test)
add_test(NAME cost_model/while_compiling COMMAND rankc_cost_model_compiled_test)
set_tests_properties(cost_model/while_compiling_build PROPERTIES LABELS long FIXTURES_SETUP cost_model_compiled TIMEOUT 3600
  RESOURCE_LOCK build)
set_tests_properties(cost_model/while_compiling PROPERTIES LABELS long FIXTURES_REQUIRED cost_model_compiled)
