# Processes: launchers' variables, the control plane, and programs of several processes on the host.
add_executable(rankc_launch_test
  runtime/launch/coordinator_test.cpp
  runtime/launch/environment_test.cpp
  runtime/launch/frame_test.cpp
  runtime/launch/hello_test.cpp
  runtime/launch/network_test.cpp
  runtime/launch/nodelist_test.cpp
  runtime/core/printable_test.cpp
  runtime/launch/spawn_test.cpp
  runtime/launch/watch_test.cpp
  runtime/launch/watchdog_test.cpp)
target_link_libraries(rankc_launch_test PRIVATE rankc::trainer rankc_test_host_main)
target_compile_definitions(rankc_launch_test PRIVATE RANKC_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles/launch")
add_test(NAME launch COMMAND rankc_launch_test)

# Programs of tests/odd with a process for each rank: a part of the sample, and in `long` every program.
add_executable(rankc_launch_programs_test runtime/launch/programs_test.cpp)
target_include_directories(rankc_launch_programs_test PRIVATE programs)
target_link_libraries(rankc_launch_programs_test PRIVATE rankc_odd_host rankc_test_host_main)
add_test(NAME launch/programs COMMAND rankc_launch_programs_test)
set_tests_properties(launch/programs PROPERTIES ENVIRONMENT RANKC_TEST_EVERY=4)
rankc_every_program(launch/programs_long rankc_launch_programs_test odd)

# A program started as users start it: with each launcher, and with faults, separately. Without the launcher a
# test is skipped.
if(RANKC_PLANS AND TARGET rankc::gloo)
  add_library(rankc_many_cores SHARED runtime/launch/many_cores.cpp)
  target_link_libraries(rankc_many_cores PRIVATE ${CMAKE_DL_LIBS} rankc_warnings)
  add_executable(rankc_launch_processes_test
    runtime/launch/attack_test.cpp runtime/launch/processes_test.cpp runtime/launch/signal_matrix_test.cpp
    runtime/launch/signals_test.cpp runtime/launch/starts_test.cpp runtime/launch/strangers_test.cpp)
  target_link_libraries(rankc_launch_processes_test PRIVATE rankc::trainer rankc_test_host_main nlohmann_json::nlohmann_json)
  target_compile_definitions(rankc_launch_processes_test PRIVATE RANKC_TEST_PROGRAM="$<TARGET_FILE:gpt_pp2>"
    RANKC_TEST_OTHER_PLAN="$<TARGET_FILE:gpt_gated>" RANKC_TEST_ONE_RANK="$<TARGET_FILE:gpt_one_rank>"
    RANKC_TEST_MANY_CORES="$<TARGET_FILE:rankc_many_cores>"
    $<$<BOOL:${RANKC_INJECT}>:RANKC_INJECT> RANKC_SLURM_LOCAL="${CMAKE_CURRENT_SOURCE_DIR}/oracles/launch/slurm_local.sh")
  add_dependencies(rankc_launch_processes_test gpt_pp2 gpt_gated gpt_one_rank rankc_many_cores)
  foreach(way IN ITEMS "own launcher" mpirun srun torchrun faults signals starts strangers)
    string(REPLACE " " "_" name "${way}")
    add_test(NAME launch/processes/${name} COMMAND rankc_launch_processes_test "-tc=${way}:*")
    set_tests_properties(launch/processes/${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 120)
  endforeach()
  # Signals x moments x launches: every eleventh, and all in the long test.
  if(RANKC_INJECT)
    foreach(way IN ITEMS signal_matrix signal_matrix_long)
      add_test(NAME launch/processes/${way} COMMAND rankc_launch_processes_test "-tc=signal_matrix:*")
    endforeach()
    set_tests_properties(launch/processes/signal_matrix PROPERTIES ENVIRONMENT RANKC_TEST_EVERY=11)
    set_tests_properties(launch/processes/signal_matrix_long PROPERTIES LABELS long)
  endif()
  add_test(NAME launch/processes/strangers_long COMMAND rankc_launch_processes_test "-tc=strangers:*")
  set_tests_properties(launch/processes/strangers_long PROPERTIES LABELS long TIMEOUT 240
    ENVIRONMENT RANKC_ATTACK_SECONDS=60)
  add_test(NAME launch/processes/attack COMMAND rankc_launch_processes_test "-tc=attack:*")
  set_tests_properties(launch/processes/attack PROPERTIES LABELS long TIMEOUT 600 RUN_SERIAL ON)
endif()

# Injected faults: some here, and hundreds in the long test.
if(RANKC_INJECT AND TARGET rankc::gloo)
  foreach(ranks IN ITEMS four eight)
    add_rankc_program(faults_${ranks} PLAN runtime/launch/faults_plans.hpp NAME faults::${ranks} TARGET host)
  endforeach()
  add_executable(rankc_launch_faults_test runtime/launch/faults_test.cpp)
  target_link_libraries(rankc_launch_faults_test PRIVATE rankc::trainer rankc_test_host_main)
  target_compile_definitions(rankc_launch_faults_test PRIVATE RANKC_FAULTS_AT_ONCE=4
    RANKC_FAULTS_FOUR="$<TARGET_FILE:faults_four>" RANKC_FAULTS_EIGHT="$<TARGET_FILE:faults_eight>")
  add_dependencies(rankc_launch_faults_test faults_four faults_eight)
  foreach(way IN ITEMS faults faults_long)
    add_test(NAME launch/${way} COMMAND rankc_launch_faults_test)
  endforeach()
  set_tests_properties(launch/faults PROPERTIES TIMEOUT 180)
  set_tests_properties(launch/faults_long PROPERTIES LABELS long ENVIRONMENT RANKC_FAULT_RUNS=540)
endif()
