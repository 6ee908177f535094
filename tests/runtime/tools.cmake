find_package(nlohmann_json REQUIRED)

add_executable(rankc_runtime_tools_test
  runtime/tools/call_account_test.cpp
  runtime/tools/checkpoint_test.cpp
  runtime/tools/data_test.cpp
  runtime/tools/generate_test.cpp
  runtime/tools/hash_test.cpp
  runtime/tools/learning_rate_test.cpp
  runtime/tools/metrics_test.cpp
  runtime/tools/not_finite_test.cpp
  runtime/tools/parameters_test.cpp
  runtime/tools/program_test.cpp
  runtime/tools/replicas_test.cpp
  runtime/tools/safetensors_test.cpp
  runtime/tools/sample_order_test.cpp
  runtime/tools/saver_test.cpp
  runtime/tools/token_oracles_test.cpp
  runtime/tools/training_test.cpp
  runtime/launch/watchdog_test.cpp)
target_compile_definitions(rankc_runtime_tools_test PRIVATE RANKC_DATA_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles/data")
target_link_libraries(rankc_runtime_tools_test
  PRIVATE rankc::runtime_tools rankc_test_main nlohmann_json::nlohmann_json)
# Most of the compiler's time are templates of JSON and of doctest, which these sources share.
set_target_properties(rankc_runtime_tools_test PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
add_test(NAME runtime_tools COMMAND rankc_runtime_tools_test)
# An executable whose filters match nothing has checked nothing.
add_test(NAME runtime_tools/no_match COMMAND rankc_runtime_tools_test "-tc=no such test case")
set_tests_properties(runtime_tools/no_match PROPERTIES WILL_FAIL TRUE)

# The order of the calls that change files: the linker lets the test see them.
add_executable(rankc_durability_test runtime/tools/durability_test.cpp runtime/tools/file_calls.cpp)
target_link_libraries(rankc_durability_test PRIVATE rankc::runtime_tools rankc_test_main)
set(seen open write fsync rename renameat2 _ZNSt10filesystem10remove_allERKNS_7__cxx114pathERSt10error_code)
list(TRANSFORM seen PREPEND "LINKER:--wrap=")
target_link_options(rankc_durability_test PRIVATE ${seen})
add_test(NAME runtime_tools/durability COMMAND rankc_durability_test)
if(EXISTS /dev/shm)  # hundreds of saves, each of which waits for the disk
  set_tests_properties(runtime_tools/durability PROPERTIES ENVIRONMENT TMPDIR=/dev/shm)
endif()
