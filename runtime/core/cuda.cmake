# The CUDA core: what a generated CUDA program links. The CUDA runtime, cuBLASLt and NCCL stand behind it, and cuDNN
# where it is found.
find_package(CUDAToolkit REQUIRED)
find_package(Threads REQUIRED)
include(${PROJECT_SOURCE_DIR}/runtime/cmake/nccl.cmake)
include(${PROJECT_SOURCE_DIR}/runtime/cmake/cudnn.cmake)

add_library(rankc_runtime_cuda STATIC
  core/call_recorder.cpp
  core/embedded.cpp
  core/cuda/attention/attention.cu
  core/cuda/attention/attention_grad.cu
  core/cuda/attention/chunk_attention.cu
  core/cuda/attention/ring_attention.cu
  core/cuda/communication/adopted.cpp
  core/cuda/communication/agreement.cpp
  core/cuda/communication/by_rows.cpp
  core/cuda/communication/communicate.cpp
  core/cuda/communication/communicators.cpp
  core/cuda/communication/peer_access.cpp
  core/cuda/communication/peer_edges.cpp
  core/cuda/communication/peer_groups.cpp
  core/cuda/communication/waiting_blocks.cpp
  core/cuda/device/arena.cpp
  core/cuda/device/buffer.cpp
  core/cuda/device/check.cpp
  core/cuda/device/stream_words.cpp
  core/cuda/device/teardown.cpp
  core/cuda/device/tensor_map.cpp
  core/cuda/elementwise/embedding_grad.cu
  core/cuda/engine/access.cpp
  core/cuda/engine/context.cpp
  core/cuda/engine/driver.cpp
  core/cuda/engine/embedded.cpp
  core/cuda/engine/engine.cpp
  core/cuda/engine/worker.cpp
  core/cuda/linear/linear.cpp
  core/cuda/linear/linear_fp8.cpp
  core/cuda/linear/linear_fused.cpp
  core/cuda/linear/linear_plans.cpp
  core/cuda/linear/linear_proposals.cpp
  core/cuda/linear/linear_tuning.cpp
  core/cuda/linear/product_choices.cpp
  core/cuda/progress/injected.cpp
  core/cuda/progress/mark_stores.cu
  core/cuda/progress/marks.cpp)
add_library(rankc::runtime_cuda ALIAS rankc_runtime_cuda)

# CUDA sources compiled several at once: most of their time are the headers that they share. CMake has unity builds of CUDA from
# 3.31 on. Attention and what uses cub take longest, each alone; tests have marks of their own.
function(rankc_unite name)
  list(TRANSFORM ARGN REPLACE "(.+)" "#include \"${CMAKE_CURRENT_SOURCE_DIR}/core/cuda/\\1\"" OUTPUT_VARIABLE lines)
  list(JOIN lines "\n" text)
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/united/${name}.cu" CONTENT "${text}\n" @ONLY)
  target_sources(rankc_runtime_cuda PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/united/${name}.cu")
endfunction()
rankc_unite(communication
  communication/check_collectives.cu
  communication/exchange.cu
  communication/own_shards.cu
  communication/parts.cu
  communication/peer_meeting.cu
  communication/peer_sums.cu
  communication/rounded_parts.cu
  communication/slots.cu)
rankc_unite(elementwise
  elementwise/activations.cu
  elementwise/activations_gated.cu
  elementwise/bias.cu
  elementwise/embedding.cu
  elementwise/gates.cu
  elementwise/optimizer.cu
  elementwise/rope.cu)
rankc_unite(experts
  experts/balance.cu
  experts/experts.cu
  experts/grouped.cu
  experts/router.cu
  experts/router_choice.cu)
rankc_unite(norms
  norms/norms.cu
  norms/norms_dw.cu
  norms/norms_grad.cu
  norms/norms_narrow.cu)
rankc_unite(other
  attention/sinks.cu
  engine/warm_up.cu
  fp8/fp8.cu
  fp8/fp8_rows.cu
  fp8/norms_fp8.cu
  linear/gelu_sums.cu
  loss/cross_entropy.cu
  loss/cross_entropy_fused.cu
  loss/masked_cross_entropy.cu
  loss/sequences.cu
  loss/padding.cu
  loss/softmax.cu
  progress/trace.cu)
target_include_directories(rankc_runtime_cuda PUBLIC
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/core> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(rankc_runtime_cuda PUBLIC cxx_std_20)
# CMake 3.25 does not know that nvcc has C++20, so CUDA_STANDARD cannot ask for it; generated .cu files need it too.
target_compile_options(rankc_runtime_cuda
  PUBLIC $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>
  PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo -Xcompiler=-Wall,-Wextra>)
target_link_libraries(rankc_runtime_cuda
  PUBLIC CUDA::cudart CUDA::cublasLt NCCL::nccl Threads::Threads
  PRIVATE $<BUILD_INTERFACE:rankc_warnings>)
if(TARGET CUDNN::cudnn)
  target_sources(rankc_runtime_cuda PRIVATE core/cuda/attention/attention_cudnn.cpp core/cuda/attention/attention_graph.cpp)
  target_link_libraries(rankc_runtime_cuda PRIVATE CUDNN::cudnn)
else()
  message(STATUS "rankc: no cuDNN (cudnn_graph.h, libcudnn) was found; attention in bf16 uses slower kernels, but for heads of 64 on Hopper")
  target_sources(rankc_runtime_cuda PRIVATE core/cuda/attention/attention_without_cudnn.cpp)
endif()
get_target_property(sources rankc_runtime_cuda SOURCES)
list(FILTER sources INCLUDE REGEX "\\.cu$")
set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # CMake 3.31 would unite them once more
set_target_properties(rankc_runtime_cuda PROPERTIES
  EXPORT_NAME runtime_cuda POSITION_INDEPENDENT_CODE ON UNITY_BUILD ON)
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set_target_properties(rankc_runtime_cuda PROPERTIES CUDA_ARCHITECTURES 90)
endif()

# Instructions that compute capability 9.0 alone has; on other GPUs this code is not called.
add_library(rankc_runtime_hopper OBJECT core/cuda/attention/attention_hopper.cu core/cuda/attention/attention_masked.cu core/cuda/loss/cross_entropy_hopper.cu core/cuda/experts/grouped_hopper.cu)
set_target_properties(rankc_runtime_hopper PROPERTIES CUDA_ARCHITECTURES 90a-real POSITION_INDEPENDENT_CODE ON)
foreach(property IN ITEMS INCLUDE_DIRECTORIES COMPILE_FEATURES COMPILE_OPTIONS LINK_LIBRARIES)
  set_target_properties(rankc_runtime_hopper PROPERTIES ${property} $<TARGET_PROPERTY:rankc_runtime_cuda,${property}>)
endforeach()
target_sources(rankc_runtime_cuda PRIVATE $<TARGET_OBJECTS:rankc_runtime_hopper>)

# Times of kernels, by which the cost model is calibrated.
add_executable(rankc_calibrate calibrate/main.cpp calibrate/meter.cpp calibrate/stand.cpp calibrate/products.cpp calibrate/attention.cpp calibrate/passes.cpp calibrate/power.cpp)
set_target_properties(rankc_calibrate PROPERTIES OUTPUT_NAME rankc-calibrate)
target_link_libraries(rankc_calibrate PRIVATE rankc_runtime_cuda ${CMAKE_DL_LIBS} rankc_warnings)
