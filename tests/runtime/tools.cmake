find_package(nlohmann_json REQUIRED)

add_executable(rankc_runtime_tools_test
  runtime/tools/checkpoint_test.cpp
  runtime/tools/data_test.cpp
  runtime/tools/hash_test.cpp
  runtime/tools/learning_rate_test.cpp
  runtime/tools/metrics_test.cpp
  runtime/tools/parameters_test.cpp
  runtime/tools/program_test.cpp
  runtime/tools/safetensors_test.cpp)
target_link_libraries(rankc_runtime_tools_test
  PRIVATE rankc::runtime_tools rankc_test_main nlohmann_json::nlohmann_json)
add_test(NAME runtime_tools COMMAND rankc_runtime_tools_test)
# An executable whose filters match nothing has checked nothing.
add_test(NAME runtime_tools/no_match COMMAND rankc_runtime_tools_test "-tc=no such test case")
set_tests_properties(runtime_tools/no_match PROPERTIES WILL_FAIL TRUE)
