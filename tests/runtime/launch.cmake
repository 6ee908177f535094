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
