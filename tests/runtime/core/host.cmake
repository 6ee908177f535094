# Tests of the host runtime core.
add_executable(rankc_runtime_host_test
  runtime/core/packed_times_test.cpp runtime/core/progress_test.cpp runtime/core/parameter_tables_test.cpp runtime/core/rank_tables_test.cpp
  runtime/core/host/blas_buffers_test.cpp
  runtime/core/host/activation_test.cpp runtime/core/host/attention_test.cpp runtime/core/host/attention_setting_test.cpp runtime/core/host/concurrent_lanes_test.cpp
  runtime/core/host/carrier_test.cpp runtime/core/host/cross_entropy_test.cpp
  runtime/core/host/embedded_test.cpp runtime/core/host/embedding_test.cpp runtime/core/host/engine_test.cpp runtime/core/host/exp_test.cpp
  runtime/core/host/fabric_failure_test.cpp runtime/core/host/fabric_test.cpp runtime/core/host/fp8_test.cpp runtime/core/host/gates_test.cpp
  runtime/core/host/linear_test.cpp runtime/core/host/norm_test.cpp runtime/core/host/openblas_core_test.cpp
  runtime/core/host/optimizer_test.cpp
  runtime/core/host/parts_test.cpp runtime/core/host/retrace_test.cpp runtime/core/host/optimizer_rounding_test.cpp runtime/core/host/router_test.cpp
  runtime/core/host/padding_test.cpp runtime/core/host/sinks_test.cpp runtime/core/host/softmax_test.cpp)
target_link_libraries(rankc_runtime_host_test PRIVATE rankc_runtime_host rankc_test_host_main nlohmann_json::nlohmann_json)
target_compile_definitions(rankc_runtime_host_test PRIVATE RANKC_TEST_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles")
add_test(NAME runtime_host COMMAND rankc_runtime_host_test)
set_tests_properties(runtime_host PROPERTIES TIMEOUT 120)
