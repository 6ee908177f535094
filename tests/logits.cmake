# What a forward program leaves for `generate`, of the example plans.
if(TARGET gpt_pp2_program)
  add_executable(rankc_logits_test logits/logits_test.cpp)
  target_link_libraries(rankc_logits_test PRIVATE gpt_one_rank_program gpt_pp2_program gpt_dp2_tp2_pp2_program gpt_dual_pipe_v_program
    rankc::trainer rankc_test_host_main)
  add_test(NAME logits COMMAND rankc_logits_test)
endif()
