# The core of the CPU target: kernels on OpenBLAS, the fabric between rank threads, and the engine.
include(src/host/openblas.cmake)
find_package(Threads REQUIRED)

set(rankc_host_kernels
  src/host/activation.cpp src/host/attention.cpp src/host/balance.cpp src/host/chunk_attention.cpp src/host/ring_attention.cpp src/host/cross_entropy.cpp
  src/host/embedding.cpp src/host/experts.cpp src/host/fp8.cpp src/host/fp8_rows.cpp src/host/gates.cpp src/host/linear.cpp src/host/norm.cpp src/host/optimizer.cpp
  src/host/parts.cpp src/host/router.cpp src/host/router_choice.cpp src/host/softmax.cpp src/host/transfer.cpp)
add_library(rankc_runtime_host STATIC
  ${rankc_host_kernels}
  src/embedded.cpp
  src/host/arena.cpp src/host/carrier.cpp src/host/check.cpp src/host/embedded.cpp src/host/engine.cpp src/host/fabric.cpp
  src/host/fabric_embedded.cpp src/host/fabric_meetings.cpp src/host/fabric_processes.cpp src/host/fabric_text.cpp
  src/host/injected.cpp src/host/local_rank.cpp src/host/other_processes.cpp src/host/prepare.cpp src/host/rank.cpp
  src/host/retrace.cpp src/host/step.cpp)
add_library(rankc::runtime_host ALIAS rankc_runtime_host)
set_target_properties(rankc_runtime_host PROPERTIES EXPORT_NAME runtime_host POSITION_INDEPENDENT_CODE ON UNITY_BUILD ON)
# The CUDA core has this file, too: a program of both takes it from one of them.
set_source_files_properties(src/embedded.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
if(RANKC_INJECT)
  target_compile_definitions(rankc_runtime_host PUBLIC RANKC_INJECT)
endif()
target_compile_features(rankc_runtime_host PUBLIC cxx_std_20)
target_include_directories(rankc_runtime_host PUBLIC
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(rankc_runtime_host
  PUBLIC Threads::Threads
  PRIVATE rankc::openblas $<BUILD_INTERFACE:rankc_warnings>)

# -fopenmp-simd reads `omp simd` only: no OpenMP runtime. Without errno and traps, loops over sqrt and compares
# vectorise; NaN and infinity keep their meaning. Clang does not vectorise a maximum under
# these rules, and would warn of it.
set(rankc_host_kernel_options -O3 -fopenmp-simd -ffp-contract=fast -fno-math-errno -fno-trapping-math
  $<$<BOOL:${RANKC_NATIVE}>:-march=native> $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)
set_source_files_properties(${rankc_host_kernels} PROPERTIES COMPILE_OPTIONS "${rankc_host_kernel_options}")
