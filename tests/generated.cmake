# The committed programs under generated/ are generated again and compared.
if(RANKC_PLANS)
  foreach(plan IN ITEMS 02_gpt_pp2 03_gpt_dp2_tp2_pp2 05_gpt_dual_pipe_v)
    string(SUBSTRING ${plan} 3 -1 name)
    foreach(target IN ITEMS host cuda)
      if(NOT EXISTS ${rankc_SOURCE_DIR}/generated/${plan}/${target})
        continue()
      endif()
      add_test(NAME generated/${plan}/${target}
        COMMAND ${CMAKE_COMMAND} -DGENERATOR=$<TARGET_FILE:${name}_rankc> -DTARGET=${target}
                -DCOMMITTED=${rankc_SOURCE_DIR}/generated/${plan}/${target}
                -DSCRATCH=${CMAKE_CURRENT_BINARY_DIR}/generated/${plan}/${target}
                -P ${CMAKE_CURRENT_SOURCE_DIR}/generated/compare.cmake)
    endforeach()
  endforeach()
  add_test(NAME generated/fingerprint
    COMMAND ${CMAKE_COMMAND} -DGENERATOR=$<TARGET_FILE:gpt_dp2_tp2_pp2_rankc> -DPROGRAM=$<TARGET_FILE:gpt_dp2_tp2_pp2>
            -DTOOL=$<TARGET_FILE:rankc_tool> -DSCRATCH=${CMAKE_CURRENT_BINARY_DIR}/generated/fingerprint
            -P ${CMAKE_CURRENT_SOURCE_DIR}/generated/fingerprint.cmake)
  add_test(NAME generated/misfits
    COMMAND ${CMAKE_COMMAND} -DCXX=${CMAKE_CXX_COMPILER} -DRUNTIME=${rankc_SOURCE_DIR}/runtime/core
            -DCOMMITTED=${rankc_SOURCE_DIR}/generated/03_gpt_dp2_tp2_pp2/host
            -DSCRATCH=${CMAKE_CURRENT_BINARY_DIR}/generated/misfits
            -P ${CMAKE_CURRENT_SOURCE_DIR}/generated/misfits.cmake)
endif()
