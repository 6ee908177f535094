# The control plane: ranks find each other, exchange facts, watch each other, and are started as processes.
find_package(fmt REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Threads REQUIRED)
include(${CMAKE_CURRENT_LIST_DIR}/gloo.cmake)

add_library(rankc_launch STATIC
  launch/addresses.cpp
  launch/board.cpp
  launch/coordinator.cpp
  launch/coordinator_causes.cpp
  launch/coordinator_server.cpp
  launch/coordinator_start.cpp
  launch/environment.cpp
  launch/error_file.cpp
  launch/file_limit.cpp
  launch/frame.cpp
  launch/hello.cpp
  launch/join.cpp
  launch/keys.cpp
  launch/limits.cpp
  launch/listen.cpp
  launch/member.cpp
  launch/nodelist.cpp
  launch/say_error.cpp
  launch/secret.cpp
  launch/session.cpp
  launch/socket.cpp
  launch/spawn.cpp
  launch/stop_signals.cpp
  launch/watch.cpp
  launch/watchdog.cpp)
add_library(rankc::launch ALIAS rankc_launch)
set_target_properties(rankc_launch PROPERTIES EXPORT_NAME launch UNITY_BUILD ON)
target_compile_features(rankc_launch PUBLIC cxx_std_20)
target_compile_definitions(rankc_launch PRIVATE RANKC_VERSION="${rankc_VERSION}")
# The contract of the core, engine.hpp and what it includes, are headers alone.
target_include_directories(rankc_launch PUBLIC
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/core> $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/launch>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(rankc_launch PRIVATE fmt::fmt OpenSSL::Crypto Threads::Threads $<BUILD_INTERFACE:rankc_warnings>)
if(TARGET rankc::gloo)
  target_sources(rankc_launch PRIVATE launch/connect_gloo.cpp)
  target_link_libraries(rankc_launch PRIVATE rankc::gloo)
else()
  message(STATUS "rankc: no Gloo was found (libgloo-dev); on the host all ranks are threads of one process")
  target_sources(rankc_launch PRIVATE launch/connect_without_gloo.cpp)
endif()
