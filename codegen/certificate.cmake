# The certificate. One schema serves its writer, its reader and its page, FORMAT.md.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)

add_library(rankc_certificate STATIC
  certificate/call_operands.cpp
  certificate/describe.cpp
  certificate/hash_calls.cpp certificate/hash_places.cpp certificate/hash_rows.cpp
  certificate/json_tree.cpp
  certificate/read.cpp
  certificate/reader.cpp
  certificate/to_programs.cpp
  certificate/write.cpp)
add_library(rankc::certificate ALIAS rankc_certificate)
set_target_properties(rankc_certificate PROPERTIES EXPORT_NAME certificate)
target_include_directories(rankc_certificate PUBLIC
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}> $<BUILD_INTERFACE:${rankc_SOURCE_DIR}/runtime/core>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(rankc_certificate PUBLIC cxx_std_20)
target_link_libraries(rankc_certificate PRIVATE
  fmt::fmt $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> $<BUILD_INTERFACE:rankc_warnings>)
