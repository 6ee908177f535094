# The commands of the encoders' plans.
if(RANKC_PLANS)
  add_executable(rankc_encoder_commands_test extremes/bounded_run.cpp encoders/commands_test.cpp)
  target_link_libraries(rankc_encoder_commands_test PRIVATE nlohmann_json::nlohmann_json rankc_test_main)
  target_include_directories(rankc_encoder_commands_test PRIVATE "${PROJECT_SOURCE_DIR}/runtime/core")
  target_compile_definitions(rankc_encoder_commands_test PRIVATE
    VIT="$<TARGET_FILE:vit>" REGRESSION="$<TARGET_FILE:regression>")
  add_dependencies(rankc_encoder_commands_test vit regression)
  add_test(NAME encoders/commands COMMAND rankc_encoder_commands_test)
endif()
