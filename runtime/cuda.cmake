# The CUDA core: what a generated CUDA program links. The CUDA runtime, cuBLASLt and NCCL stand behind it, and cuDNN
# where it is found.
find_package(CUDAToolkit REQUIRED)
find_package(Threads REQUIRED)
include(${PROJECT_SOURCE_DIR}/runtime/cmake/nccl.cmake)
include(${PROJECT_SOURCE_DIR}/runtime/cmake/cudnn.cmake)

add_library(rankc_runtime_cuda STATIC
  src/embedded.cpp
  src/cuda/access.cpp
  src/cuda/activations.cu
  src/cuda/activations_gated.cu
  src/cuda/adopted.cpp
  src/cuda/agreement.cpp
  src/cuda/arena.cpp
  src/cuda/attention.cu
  src/cuda/attention_grad.cu
  src/cuda/bias.cu
  src/cuda/buffer.cpp
  src/cuda/by_rows.cpp
  src/cuda/balance.cu
  src/cuda/check.cpp
  src/cuda/check_collectives.cu
  src/cuda/communicate.cpp
  src/cuda/communicators.cpp
  src/cuda/context.cpp
  src/cuda/cross_entropy.cu
  src/cuda/cross_entropy_fused.cu
  src/cuda/driver.cpp
  src/cuda/embedded.cpp
  src/cuda/embedding.cu
  src/cuda/embedding_grad.cu
  src/cuda/chunk_attention.cu
  src/cuda/engine.cpp
  src/cuda/exchange.cu
  src/cuda/slots.cu
  src/cuda/experts.cu
  src/cuda/fp8.cu
  src/cuda/fp8_rows.cu
  src/cuda/gates.cu
  src/cuda/gelu_sums.cu
  src/cuda/grouped.cu
  src/cuda/injected.cpp
  src/cuda/linear.cpp
  src/cuda/linear_fp8.cpp
  src/cuda/linear_fused.cpp
  src/cuda/linear_plans.cpp
  src/cuda/linear_proposals.cpp
  src/cuda/linear_tuning.cpp
  src/cuda/mark_stores.cu
  src/cuda/marks.cpp
  src/cuda/norms.cu
  src/cuda/norms_dw.cu
  src/cuda/norms_fp8.cu
  src/cuda/norms_grad.cu
  src/cuda/norms_narrow.cu
  src/cuda/optimizer.cu
  src/cuda/own_shards.cu
  src/cuda/parts.cu
  src/cuda/peer_access.cpp
  src/cuda/peer_edges.cpp
  src/cuda/peer_groups.cpp
  src/cuda/peer_meeting.cu
  src/cuda/peer_sums.cu
  src/cuda/product_choices.cpp
  src/cuda/ring_attention.cu
  src/cuda/rope.cu
  src/cuda/rounded_parts.cu
  src/cuda/router.cu
  src/cuda/router_choice.cu
  src/cuda/softmax.cu
  src/cuda/stream_words.cpp
  src/cuda/tensor_map.cpp
  src/cuda/trace.cu
  src/cuda/warm_up.cu
  src/cuda/worker.cpp)
add_library(rankc::runtime_cuda ALIAS rankc_runtime_cuda)
target_include_directories(rankc_runtime_cuda PUBLIC
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(rankc_runtime_cuda PUBLIC cxx_std_20)
# CMake 3.25 does not know that nvcc has C++20, so CUDA_STANDARD cannot ask for it; generated .cu files need it too.
target_compile_options(rankc_runtime_cuda
  PUBLIC $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>
  PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo -Xcompiler=-Wall,-Wextra>)
target_link_libraries(rankc_runtime_cuda
  PUBLIC CUDA::cudart CUDA::cublasLt NCCL::nccl Threads::Threads
  PRIVATE $<BUILD_INTERFACE:rankc_warnings>)
if(TARGET CUDNN::cudnn)
  target_sources(rankc_runtime_cuda PRIVATE src/cuda/attention_cudnn.cpp src/cuda/attention_graph.cpp)
  target_link_libraries(rankc_runtime_cuda PRIVATE CUDNN::cudnn)
else()
  message(STATUS "rankc: no cuDNN (cudnn_graph.h, libcudnn) was found; attention in bf16 uses slower kernels, but for heads of 64 on Hopper")
  target_sources(rankc_runtime_cuda PRIVATE src/cuda/attention_without_cudnn.cpp)
endif()
set_target_properties(rankc_runtime_cuda PROPERTIES
  EXPORT_NAME runtime_cuda POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set_target_properties(rankc_runtime_cuda PROPERTIES CUDA_ARCHITECTURES 90)
endif()

# Instructions that compute capability 9.0 alone has; on other GPUs this code is not called.
add_library(rankc_runtime_hopper OBJECT src/cuda/attention_hopper.cu src/cuda/cross_entropy_hopper.cu src/cuda/grouped_hopper.cu)
set_target_properties(rankc_runtime_hopper PROPERTIES CUDA_ARCHITECTURES 90a-real POSITION_INDEPENDENT_CODE ON)
foreach(property IN ITEMS INCLUDE_DIRECTORIES COMPILE_FEATURES COMPILE_OPTIONS LINK_LIBRARIES)
  set_target_properties(rankc_runtime_hopper PROPERTIES ${property} $<TARGET_PROPERTY:rankc_runtime_cuda,${property}>)
endforeach()
target_sources(rankc_runtime_cuda PRIVATE $<TARGET_OBJECTS:rankc_runtime_hopper>)

# Times of kernels, by which the cost model is calibrated.
add_executable(rankc_calibrate calibrate/main.cpp calibrate/meter.cpp calibrate/stand.cpp calibrate/products.cpp calibrate/attention.cpp calibrate/passes.cpp calibrate/power.cpp)
set_target_properties(rankc_calibrate PROPERTIES OUTPUT_NAME rankc-calibrate)
target_link_libraries(rankc_calibrate PRIVATE rankc_runtime_cuda ${CMAKE_DL_LIBS} rankc_warnings)
