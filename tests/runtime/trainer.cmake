# Tests of the trainer: data, checkpoints, command lines, and the order of the calls that change files.
find_package(nlohmann_json REQUIRED)

add_executable(rankc_trainer_test
  runtime/trainer/array_folder_test.cpp
  runtime/trainer/call_account_test.cpp
  runtime/trainer/chat/chat_text_test.cpp
  runtime/trainer/checkpoint_index_test.cpp
  runtime/trainer/checkpoint_test.cpp
  runtime/trainer/command_line_test.cpp
  runtime/trainer/balanced_documents_test.cpp
  runtime/trainer/data_files_test.cpp
  runtime/trainer/data_test.cpp
  runtime/trainer/document_borders_test.cpp
  runtime/trainer/document_ends_test.cpp
  runtime/trainer/earlier_run_test.cpp
  runtime/trainer/evaluate_test.cpp
  runtime/trainer/file_names_test.cpp
  runtime/trainer/generate_test.cpp
  runtime/trainer/hash_test.cpp
  runtime/trainer/model_files_test.cpp
  runtime/trainer/json/json_file_test.cpp
  runtime/trainer/injection_test.cpp
  runtime/trainer/labels_across_documents_test.cpp
  runtime/trainer/labels_test.cpp
  runtime/trainer/learning_rate_test.cpp
  runtime/trainer/metrics_test.cpp
  runtime/trainer/not_finite_test.cpp
  runtime/trainer/outputs_test.cpp
  runtime/trainer/parameters_test.cpp
  runtime/trainer/main_test.cpp
  runtime/trainer/replicas_test.cpp
  runtime/trainer/resume_test.cpp
  runtime/trainer/safetensors_test.cpp
  runtime/trainer/sample_source_test.cpp
  runtime/trainer/saver_test.cpp
  runtime/trainer/score_test.cpp
  runtime/trainer/token_file_test.cpp
  runtime/trainer/trainer_test.cpp
  runtime/trainer/weights_test.cpp)
target_compile_definitions(rankc_trainer_test PRIVATE RANKC_DATA_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles/data"
  RANKC_TOKENIZERS="${CMAKE_CURRENT_SOURCE_DIR}/oracles/tokenizers" RANKC_CHATS="${CMAKE_CURRENT_SOURCE_DIR}/oracles/chat"
  $<$<TARGET_EXISTS:rankc::text_libraries>:RANKC_TEXT_LIBRARIES> $<$<BOOL:${RANKC_INJECT}>:RANKC_INJECT>)
target_link_libraries(rankc_trainer_test
  PRIVATE rankc::trainer rankc_test_host_main nlohmann_json::nlohmann_json)
# Templates of JSON and of doctest take most of the compile time, and these sources share them.
set_target_properties(rankc_trainer_test PROPERTIES UNITY_BUILD ON)
add_test(NAME trainer COMMAND rankc_trainer_test)
# Fails if an executable's filters match no test case.
add_test(NAME trainer/no_match COMMAND rankc_trainer_test "-tc=no such test case")
set_tests_properties(trainer/no_match PROPERTIES WILL_FAIL TRUE)

# The order of the calls that change files: the linker redirects them to the test.
add_executable(rankc_durability_test
  runtime/trainer/durable_test.cpp runtime/trainer/file_calls.cpp runtime/trainer/file_systems_test.cpp)
target_link_libraries(rankc_durability_test PRIVATE rankc::trainer rankc_test_host_main)
set(seen open write fsync flock rename renameat2 _ZNSt10filesystem10remove_allERKNS_7__cxx114pathERSt10error_code)
list(TRANSFORM seen PREPEND "LINKER:--wrap=")
target_link_options(rankc_durability_test PRIVATE ${seen})
add_test(NAME trainer/durability COMMAND rankc_durability_test)
if(EXISTS /dev/shm)  # hundreds of saves, each of which waits for the disk
  set_tests_properties(trainer/durability PROPERTIES ENVIRONMENT TMPDIR=/dev/shm)
endif()
