# Tests of the host runtime core.
add_executable(rankc_runtime_host_test
  runtime/host/activation_test.cpp runtime/host/attention_test.cpp runtime/host/beside_test.cpp
  runtime/host/carrier_test.cpp runtime/host/cross_entropy_test.cpp
  runtime/host/embedded_test.cpp runtime/host/embedding_test.cpp runtime/host/engine_test.cpp runtime/host/exp_test.cpp
  runtime/host/fabric_failure_test.cpp runtime/host/fabric_test.cpp runtime/host/fp8_test.cpp runtime/host/gates_test.cpp
  runtime/host/linear_test.cpp runtime/host/norm_test.cpp runtime/host/optimizer_test.cpp
  runtime/host/parts_test.cpp runtime/host/retrace_test.cpp runtime/host/rounding_test.cpp runtime/host/router_test.cpp
  runtime/host/softmax_test.cpp)
target_link_libraries(rankc_runtime_host_test PRIVATE rankc_runtime_host rankc_test_main nlohmann_json::nlohmann_json)
target_compile_definitions(rankc_runtime_host_test PRIVATE RANKC_TEST_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles")
add_test(NAME runtime_host COMMAND rankc_runtime_host_test)
set_tests_properties(runtime_host PROPERTIES TIMEOUT 120)
