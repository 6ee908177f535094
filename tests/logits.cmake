# The logits that a forward program keeps for `generate`, for the example plans.
if(TARGET gpt_pp2_program)
  add_executable(rankc_logits_test logits/logits_test.cpp)
  target_link_libraries(rankc_logits_test PRIVATE gpt_one_rank_program gpt_pp2_program gpt_dp2_tp2_pp2_program gpt_dual_pipe_v_program
    rankc::trainer rankc_test_host_main)
  add_test(NAME logits COMMAND rankc_logits_test)

  # lm-eval queries the same program; skipped if the package is not installed.
  find_program(RANKC_PYTHON python3)
  if(RANKC_PYTHON)
    add_test(NAME logits/lm_eval COMMAND "${RANKC_PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/runtime/trainer/lm_eval_test.py"
      "${rankc_SOURCE_DIR}/runtime/lm_eval" $<TARGET_FILE:gpt_pp2>)
    set_tests_properties(logits/lm_eval PROPERTIES SKIP_RETURN_CODE 77 LABELS long)
  endif()
endif()
