# From the program to the page: an example program times a step, and its generator shows it below the plan.
if(RANKC_PLANS)
  foreach(program IN ITEMS gpt_pp2 gpt_pp2_cuda)
    if(NOT TARGET ${program})
      continue()
    endif()
    add_test(NAME trace/${program}
      COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${program}> -DGENERATOR=$<TARGET_FILE:gpt_pp2_rankc>
              -DSCRATCH=${CMAKE_CURRENT_BINARY_DIR}/trace/${program} -P ${CMAKE_CURRENT_SOURCE_DIR}/trace/run.cmake)
  endforeach()
  if(TARGET gpt_pp2_cuda)
    set_tests_properties(trace/gpt_pp2_cuda PROPERTIES
      LABELS gpu2 RUN_SERIAL ON SKIP_REGULAR_EXPRESSION "and this machine has [01] GPUs")
  endif()
endif()
