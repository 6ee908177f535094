# The commands of `rankc`, called as functions, and the program itself.
add_executable(rankc_tool_test
  codegen/tool/check_test.cpp
  codegen/tool/commands_test.cpp
  codegen/tool/dims_test.cpp
  codegen/tool/mutations_test.cpp
  codegen/tool/oracles_test.cpp
  codegen/tool/plan_search_test.cpp
  codegen/tool/rules_test.cpp
  codegen/tool/schedule_test.cpp
  codegen/tool/search_test.cpp
  codegen/tool/chat_examples_test.cpp
  codegen/tool/packer_test.cpp
  codegen/tool/token_weights_test.cpp
  codegen/tool/tokens_test.cpp)
target_include_directories(rankc_tool_test PRIVATE "${PROJECT_SOURCE_DIR}/templates" "${PROJECT_SOURCE_DIR}/runtime/trainer")
target_compile_definitions(rankc_tool_test PRIVATE
  RANKC_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles/schedules" RANKC_SOURCES="${PROJECT_SOURCE_DIR}"
  RANKC_TOOL="$<TARGET_FILE:rankc_tool>" RANKC_TOKENIZERS="${CMAKE_CURRENT_SOURCE_DIR}/oracles/tokenizers"
  RANKC_CHATS="${CMAKE_CURRENT_SOURCE_DIR}/oracles/chat"
  $<$<TARGET_EXISTS:rankc::text_libraries>:RANKC_TEXT_LIBRARIES>
  $<$<AND:$<BOOL:${RANKC_ZLIB_LIBRARY}>,$<BOOL:${RANKC_ZSTD_LIBRARY}>>:RANKC_COMPRESSIONS>)
target_link_libraries(rankc_tool_test PRIVATE rankc_tool_commands rankc::verify rankc_test_plans rankc_test_main)
find_library(RANKC_SENTENCEPIECE_TRAIN sentencepiece_train)
mark_as_advanced(RANKC_SENTENCEPIECE_TRAIN)
if(RANKC_SENTENCEPIECE_LIBRARY AND RANKC_SENTENCEPIECE_TRAIN)
  target_sources(rankc_tool_test PRIVATE codegen/tool/sentencepiece_test.cpp)
  target_include_directories(rankc_tool_test PRIVATE "${RANKC_SENTENCEPIECE_INCLUDE}")
  target_link_libraries(rankc_tool_test PRIVATE "${RANKC_SENTENCEPIECE_LIBRARY}" "${RANKC_SENTENCEPIECE_TRAIN}")
endif()
add_dependencies(rankc_tool_test rankc_tool)
add_test(NAME codegen/tool COMMAND rankc_tool_test)
add_test(NAME codegen/tool/emitted_plan COMMAND ${CMAKE_COMMAND} -DTOOL=$<TARGET_FILE:rankc_tool>
  "-DCOMPILER=${CMAKE_CXX_COMPILER};-std=c++20;-I${PROJECT_SOURCE_DIR}/dsl;-I${PROJECT_SOURCE_DIR}/runtime/core;${boost_includes};-fconstexpr-ops-limit=2147483647;-fconstexpr-loop-limit=2147483647"
  -DOUT=${CMAKE_CURRENT_BINARY_DIR}/emitted_plan -P "${CMAKE_CURRENT_SOURCE_DIR}/codegen/tool/emitted_plan.cmake")
add_test(NAME codegen/tool/version COMMAND rankc_tool --version)
set_tests_properties(codegen/tool/version PROPERTIES PASS_REGULAR_EXPRESSION "^rankc ${PROJECT_VERSION}\n$")

# The cost model of transformer-perf-estimates, compared with the Python original.
set(model codegen/tool/published_model)
add_executable(rankc_published_model_test
  ${model}/candidates_test.cpp
  ${model}/collectives_test.cpp
  ${model}/compile_time_test.cpp
  ${model}/corrected_test.cpp
  ${model}/modules_test.cpp
  ${model}/search_test.cpp
  ${model}/speed_test.cpp)
target_compile_definitions(rankc_published_model_test PRIVATE RANKC_PLANNER_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles/planner")
target_include_directories(rankc_published_model_test PRIVATE "${PROJECT_SOURCE_DIR}/codegen/tool")
target_link_libraries(rankc_published_model_test PRIVATE rankc::dsl rankc_test_main)
target_compile_options(rankc_published_model_test PRIVATE -Wno-missing-field-initializers)
set_target_properties(rankc_published_model_test PROPERTIES computes ON)
add_test(NAME ${model} COMMAND rankc_published_model_test --test-suite-exclude=speed)
add_test(NAME ${model}_speed COMMAND rankc_published_model_test --test-suite=speed)
set_tests_properties(${model}_speed PROPERTIES LABELS long RUN_SERIAL ON)
find_program(RANKC_TEST_GXX g++)
if(RANKC_TEST_GXX)
  add_test(NAME ${model}_compile_time
    COMMAND ${CMAKE_COMMAND} "-DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/${model}/while_compiling.cpp"
            "-DCOMPILER=${RANKC_TEST_GXX};-std=c++20;-fconstexpr-ops-limit=2147483647;-I${PROJECT_SOURCE_DIR}/dsl;-I${PROJECT_SOURCE_DIR}/codegen/tool"
            -P "${CMAKE_CURRENT_SOURCE_DIR}/${model}/compile_time.cmake")
  set_tests_properties(${model}_compile_time PROPERTIES LABELS long RUN_SERIAL ON)
endif()
