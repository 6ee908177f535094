# The core of the CPU target: kernels on OpenBLAS, the fabric between rank threads, and the engine.
include(${CMAKE_CURRENT_LIST_DIR}/host/openblas.cmake)
find_package(Threads REQUIRED)

set(rankc_host_kernels
  core/host/activation.cpp core/host/attention.cpp core/host/balance.cpp core/host/chunk_attention.cpp core/host/ring_attention.cpp core/host/cross_entropy.cpp core/host/masked_cross_entropy.cpp
  core/host/embedding.cpp core/host/experts.cpp core/host/fp8.cpp core/host/fp8_rows.cpp core/host/gates.cpp core/host/linear.cpp core/host/norm.cpp core/host/optimizer.cpp
  core/host/padding.cpp core/host/parts.cpp core/host/router.cpp core/host/router_choice.cpp core/host/sequences.cpp core/host/sinks.cpp core/host/softmax.cpp core/host/transfer.cpp)
add_library(rankc_runtime_host STATIC
  ${rankc_host_kernels}
  core/call_recorder.cpp core/embedded.cpp
  core/host/arena.cpp core/host/blas_buffers.cpp core/host/carrier.cpp core/host/check.cpp core/host/embedded.cpp core/host/engine.cpp core/host/fabric.cpp
  core/host/fabric_embedded.cpp core/host/fabric_meetings.cpp core/host/fabric_processes.cpp core/host/fabric_text.cpp
  core/host/injected.cpp core/host/local_rank.cpp core/host/other_processes.cpp core/host/prepare.cpp core/host/rank.cpp
  core/host/retrace.cpp core/host/step.cpp)
add_library(rankc::runtime_host ALIAS rankc_runtime_host)
set_target_properties(rankc_runtime_host PROPERTIES EXPORT_NAME runtime_host POSITION_INDEPENDENT_CODE ON UNITY_BUILD ON)
# The CUDA core has these files, too: a program of both takes them from one of them.
set_source_files_properties(core/call_recorder.cpp core/embedded.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
if(RANKC_INJECT)
  target_compile_definitions(rankc_runtime_host PUBLIC RANKC_INJECT)
endif()
target_compile_features(rankc_runtime_host PUBLIC cxx_std_20)
target_include_directories(rankc_runtime_host PUBLIC
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/core> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(rankc_runtime_host
  PUBLIC Threads::Threads
  PRIVATE rankc::openblas $<BUILD_INTERFACE:rankc_warnings>)

# -fopenmp-simd reads `omp simd` only: no OpenMP runtime. Without errno and traps, loops over sqrt and compares
# vectorise; NaN and infinity keep their meaning. Clang does not vectorise a maximum under
# these rules, and would warn of it.
set(rankc_host_kernel_options -O3 -fopenmp-simd -ffp-contract=fast -fno-math-errno -fno-trapping-math
  $<$<BOOL:${RANKC_NATIVE}>:-march=native> $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)
set_source_files_properties(${rankc_host_kernels} PROPERTIES COMPILE_OPTIONS "${rankc_host_kernel_options}")
