# Precompiled headers (RANKC_PCH), with g++. A precompiled header and its sources need the same macros and the same level of
# optimisation; their warnings may differ. -Winvalid-pch names a source that does not fit.
set(CMAKE_PCH_PROLOGUE "")  # CMake's own prologue turns the headers into system headers, which give no warnings
if(RANKC_PCH AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  message(STATUS "rankc: RANKC_PCH needs g++; ${CMAKE_CXX_COMPILER_ID} compiles without precompiled headers")
  set(RANKC_PCH OFF)
endif()

set(rankc_pch_standard_headers
  <algorithm> <chrono> <cmath> <filesystem> <fstream> <functional> <map> <memory> <optional> <set> <string> <thread> <vector>)

# A precompiled header of HEADERS, for sources that are compiled with OPTIONS and the options of LIBRARIES.
function(rankc_precompile name)
  if(NOT RANKC_PCH)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;LIBRARIES;OPTIONS")
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp" CONTENT "// All the code is in the headers.\n")
  add_library(${name} OBJECT "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} rankc_warnings)
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
  rankc_cache_precompiled(${name})
endfunction()

# The sources of the targets include the precompiled header `name` first.
function(rankc_use_precompiled name)
  if(NOT RANKC_PCH)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} REUSE_FROM ${name})
    rankc_cache_precompiled(${target})
  endforeach()
endfunction()

# ccache caches these sources if it may ignore the macros and __TIME__ of a precompiled header. It preprocesses a source
# without reading the header again if the text names the header (-fpch-preprocess).
function(rankc_cache_precompiled target)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  if(RANKC_CCACHE AND CMAKE_CXX_COMPILER_LAUNCHER STREQUAL RANKC_CCACHE)
    set_target_properties(${target} PROPERTIES
      CXX_COMPILER_LAUNCHER "env;CCACHE_SLOPPINESS=pch_defines,time_macros;${RANKC_CCACHE}")
  endif()
endfunction()
