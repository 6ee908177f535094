# The trainer's tools on top of the core: command line, data, initialisation, checkpoints, metrics.
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
include(${PROJECT_SOURCE_DIR}/runtime/src/launch/gloo.cmake)

add_library(rankc_runtime_tools STATIC
  src/launch/board.cpp
  src/launch/coordinator.cpp
  src/launch/environment.cpp
  src/launch/error_file.cpp
  src/launch/frame.cpp
  src/launch/hello.cpp
  src/launch/limits.cpp
  src/launch/member.cpp
  src/launch/nodelist.cpp
  src/launch/session.cpp
  src/launch/socket.cpp
  src/launch/spawn.cpp
  src/launch/star.cpp
  src/launch/watch.cpp
  src/tools/beginning.cpp
  src/tools/call_account.cpp
  src/tools/checkpoint.cpp
  src/tools/checkpoint_index.cpp
  src/tools/command_line.cpp
  src/tools/console.cpp
  src/tools/data.cpp
  src/tools/data_spec.cpp
  src/tools/durable.cpp
  src/tools/export.cpp
  src/tools/folder_lock.cpp
  src/tools/generate.cpp
  src/tools/hash.cpp
  src/tools/hugging_face_config.cpp
  src/tools/hugging_face_export.cpp
  src/tools/hugging_face_families.cpp
  src/tools/hugging_face_source.cpp
  src/tools/injection.cpp
  src/tools/learning_rate.cpp
  src/tools/main.cpp
  src/tools/mapped_file.cpp
  src/tools/megatron_index.cpp
  src/tools/megatron_order.cpp
  src/tools/measure.cpp
  src/tools/merged_source.cpp
  src/tools/metrics.cpp
  src/tools/router_metrics.cpp
  src/tools/mixture.cpp
  src/tools/not_finite.cpp
  src/tools/parameters.cpp
  src/tools/piece_source.cpp
  src/tools/replicas.cpp
  src/tools/run_state.cpp
  src/tools/safetensors_reader.cpp
  src/tools/safetensors_writer.cpp
  src/tools/sample_source.cpp
  src/tools/saver.cpp
  src/tools/snapshot.cpp
  src/tools/steps.cpp
  src/tools/stop_signal.cpp
  src/tools/tensor_names.cpp
  src/tools/tensor_source.cpp
  src/tools/tensorboard.cpp
  src/tools/token_file.cpp
  src/tools/time_table.cpp
  src/tools/trace_file.cpp
  src/tools/trainer.cpp
  src/launch/watchdog.cpp
  src/tools/write_checkpoint.cpp)
# A learning rate is the number that the plan's compiler has computed: no product is fused with a sum.
set_source_files_properties(src/tools/learning_rate.cpp PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
# It runs once, and CLI11's templates take long to optimise.
set_source_files_properties(src/tools/command_line.cpp PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O1>)
add_library(rankc::runtime_tools ALIAS rankc_runtime_tools)
set_target_properties(rankc_runtime_tools PROPERTIES EXPORT_NAME runtime_tools UNITY_BUILD ON)
target_compile_features(rankc_runtime_tools PUBLIC cxx_std_20)
target_compile_definitions(rankc_runtime_tools PRIVATE RANKC_VERSION="${rankc_VERSION}")
if(RANKC_INJECT)
  set_source_files_properties(src/tools/injection.cpp PROPERTIES COMPILE_DEFINITIONS RANKC_INJECT)
endif()
target_include_directories(rankc_runtime_tools PUBLIC
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# A consumer of the installed package needs fmt's library; the other two are headers that only these sources see.
target_link_libraries(rankc_runtime_tools PRIVATE fmt::fmt
  Threads::Threads $<BUILD_INTERFACE:CLI11::CLI11> $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> $<BUILD_INTERFACE:rankc_warnings>)
if(TARGET rankc::gloo)
  target_sources(rankc_runtime_tools PRIVATE src/launch/connect_gloo.cpp)
  target_link_libraries(rankc_runtime_tools PRIVATE rankc::gloo)
else()
  message(STATUS "rankc: no Gloo was found (libgloo-dev); on the host all ranks are threads of one process")
  target_sources(rankc_runtime_tools PRIVATE src/launch/connect_without_gloo.cpp)
endif()
target_sources(rankc_runtime_tools PUBLIC FILE_SET HEADERS BASE_DIRS . FILES rankc/runtime/tools/main.hpp)
