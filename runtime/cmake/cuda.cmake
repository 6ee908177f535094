# Turns CUDA on where it can be had. enable_language() is allowed at file scope only, so a consumer's directory
# includes this file too (through rankcConfig.cmake or after add_subdirectory).
include_guard(DIRECTORY)
if(NOT DEFINED RANKC_CUDA OR RANKC_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 90)
    endif()
    enable_language(CUDA)
  endif()
endif()
