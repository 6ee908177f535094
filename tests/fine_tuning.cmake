# Fine-tuning on conversations, from one Hugging Face folder to another.
if(RANKC_PLANS AND TARGET rankc::text_libraries)
  foreach(plan IN ITEMS base adapted)
    add_rankc_program(fine_tuning_${plan} PLAN fine_tuning/plans.hpp NAME fine_tuning::${plan} TARGET host DTYPE f32)
  endforeach()
  add_executable(rankc_fine_tuning_test extremes/bounded_run.cpp fine_tuning/fine_tuning_test.cpp)
  target_link_libraries(rankc_fine_tuning_test PRIVATE nlohmann_json::nlohmann_json rankc_test_main)
  target_include_directories(rankc_fine_tuning_test PRIVATE "${PROJECT_SOURCE_DIR}/runtime/core")
  target_compile_definitions(rankc_fine_tuning_test PRIVATE
    FINE_TUNING_BASE="$<TARGET_FILE:fine_tuning_base>" FINE_TUNING_ADAPTED="$<TARGET_FILE:fine_tuning_adapted>"
    FINE_TUNING_TOOL="$<TARGET_FILE:rankc_tool>" RANKC_TOKENIZERS="${CMAKE_CURRENT_SOURCE_DIR}/oracles/tokenizers")
  add_dependencies(rankc_fine_tuning_test fine_tuning_base fine_tuning_adapted rankc_tool)
  add_test(NAME programs/fine_tuning COMMAND rankc_fine_tuning_test)

  # transformers and lm-eval with the merged folder; skipped if the packages are not installed.
  find_program(RANKC_PYTHON python3)
  if(RANKC_PYTHON)
    foreach(compared IN ITEMS loss accuracy)
      add_test(NAME programs/fine_tuning/${compared} COMMAND "${RANKC_PYTHON}"
        "${CMAKE_CURRENT_SOURCE_DIR}/fine_tuning/transformers_test.py" ${compared} $<TARGET_FILE:fine_tuning_base>
        $<TARGET_FILE:fine_tuning_adapted> $<TARGET_FILE:rankc_tool>
        "${CMAKE_CURRENT_SOURCE_DIR}/oracles/tokenizers/llama3.json" "${rankc_SOURCE_DIR}/runtime/lm_eval")
      set_tests_properties(programs/fine_tuning/${compared} PROPERTIES SKIP_RETURN_CODE 77 LABELS long)
    endforeach()
  endif()
endif()
