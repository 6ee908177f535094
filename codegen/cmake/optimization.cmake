# rankc_optimization(<result>)
#
# Sets <result> to the compile option -O2 if the project asks for no optimization: CMAKE_BUILD_TYPE is empty,
# and CMAKE_CXX_FLAGS and the compile options of the directory have no -O. Otherwise <result> is empty, and
# the project's flags hold. A status line states the choice once.
include_guard(GLOBAL)

function(rankc_optimization result)
  set(${result} "" PARENT_SCOPE)
  get_property(several_build_types GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  get_directory_property(options COMPILE_OPTIONS)
  if(several_build_types OR CMAKE_BUILD_TYPE OR "${CMAKE_CXX_FLAGS};${options}" MATCHES "(^|[; ])-O")
    return()
  endif()
  set(${result} "$<$<COMPILE_LANGUAGE:CXX,CUDA>:-O2>" PARENT_SCOPE)
  get_property(told GLOBAL PROPERTY rankc_optimization_told)
  if(NOT told)
    message(STATUS "rankc: CMAKE_BUILD_TYPE is empty and CMAKE_CXX_FLAGS has no -O: the targets of rankc are compiled with -O2")
    set_property(GLOBAL PROPERTY rankc_optimization_told TRUE)
  endif()
endfunction()
