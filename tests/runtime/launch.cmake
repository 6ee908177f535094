# Processes: launchers' variables, the control plane, and programs of several processes on the host.
add_executable(rankc_launch_test
  runtime/launch/control_test.cpp
  runtime/launch/environment_test.cpp
  runtime/launch/frame_test.cpp
  runtime/launch/hello_test.cpp
  runtime/launch/nodelist_test.cpp
  runtime/launch/packed_times_test.cpp
  runtime/launch/spawn_test.cpp)
target_link_libraries(rankc_launch_test PRIVATE rankc::runtime_tools rankc_test_main)
target_compile_definitions(rankc_launch_test PRIVATE RANKC_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles/launch")
add_test(NAME launch COMMAND rankc_launch_test)

# All programs of tests/odd with their ranks apart; the long test takes every one, the other some.
add_executable(rankc_launch_programs_test runtime/launch/programs_test.cpp)
target_include_directories(rankc_launch_programs_test PRIVATE programs)
target_link_libraries(rankc_launch_programs_test PRIVATE rankc_odd_host rankc_test_main)
target_compile_definitions(rankc_launch_programs_test PRIVATE RANKC_PROGRAMS_APART=100)
foreach(way IN ITEMS programs programs_long)
  add_test(NAME launch/${way} COMMAND rankc_launch_programs_test)
endforeach()
set_tests_properties(launch/programs PROPERTIES ENVIRONMENT RANKC_TEST_EVERY=8)
set_tests_properties(launch/programs_long PROPERTIES LABELS long)
