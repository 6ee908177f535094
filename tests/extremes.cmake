# Every option of a program, of its generator and of rankc with extreme values: every 29th case in each run,
# and all cases in the long test.
if(RANKC_PLANS)
  add_executable(rankc_extremes_test
    extremes/bounded_run.cpp extremes/extremes_test.cpp extremes/options_of_help.cpp)
  target_link_libraries(rankc_extremes_test PRIVATE rankc_test_main)
  target_include_directories(rankc_extremes_test PRIVATE "${PROJECT_SOURCE_DIR}/runtime/core")
  target_compile_definitions(rankc_extremes_test PRIVATE RANKC_EXTREMES_PROGRAM="$<TARGET_FILE:gpt_pp2>"
    RANKC_EXTREMES_GENERATOR="$<TARGET_FILE:gpt_pp2_rankc>" RANKC_EXTREMES_TOOL="$<TARGET_FILE:rankc_tool>")
  add_dependencies(rankc_extremes_test gpt_pp2 gpt_pp2_rankc rankc_tool rankc_verify_program)
  foreach(way IN ITEMS extremes extremes_long)
    add_test(NAME programs/${way} COMMAND ${rankc_yielding} $<TARGET_FILE:rankc_extremes_test>)
  endforeach()
  set_tests_properties(programs/extremes PROPERTIES ENVIRONMENT RANKC_TEST_EVERY=29)
  set_tests_properties(programs/extremes_long PROPERTIES LABELS long TIMEOUT 3600)
endif()
