# The `rankc` command line: dims, schedules, searches, certificates, rules and starter projects. It needs no
# compiled plan.
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)

set(starter starter/CMakeLists.txt starter/plan.hpp starter/README.md starter/gitignore)
set(starter_embedded "${CMAKE_CURRENT_BINARY_DIR}/include/rankc/starter.hpp")
list(TRANSFORM starter PREPEND "${rankc_SOURCE_DIR}/templates/" OUTPUT_VARIABLE starter_files)
add_custom_command(OUTPUT "${starter_embedded}"
  COMMAND ${CMAKE_COMMAND} -DOUT=${starter_embedded} -DDIR=${rankc_SOURCE_DIR}/templates
          -P ${rankc_SOURCE_DIR}/codegen/cmake/embed.cmake -- ${starter}
  DEPENDS ${starter_files} "${rankc_SOURCE_DIR}/codegen/cmake/embed.cmake" COMMENT "Embedding the starter project" VERBATIM)

set(plans_page "${CMAKE_CURRENT_BINARY_DIR}/include/rankc/plans_page.hpp")
add_custom_command(OUTPUT "${plans_page}"
  COMMAND ${CMAKE_COMMAND} -DOUT=${plans_page} -DDIR=${rankc_SOURCE_DIR}/templates -P ${rankc_SOURCE_DIR}/codegen/cmake/embed.cmake -- plans.html
  DEPENDS "${rankc_SOURCE_DIR}/templates/plans.html" "${rankc_SOURCE_DIR}/codegen/cmake/embed.cmake" COMMENT "Embedding the page of plans" VERBATIM)

set(messages "${CMAKE_CURRENT_BINARY_DIR}/include/rankc/messages.hpp")
add_custom_command(OUTPUT "${messages}"
  COMMAND ${CMAKE_COMMAND} -DOUT=${messages} -DDIR=${CMAKE_CURRENT_SOURCE_DIR}/tool -P ${rankc_SOURCE_DIR}/codegen/cmake/embed.cmake -- messages.txt
  DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/tool/messages.txt" "${rankc_SOURCE_DIR}/codegen/cmake/embed.cmake" COMMENT "Embedding the messages" VERBATIM)

# All sources but main, for the tests.
add_library(rankc_tool_commands STATIC
  tool/token.cpp tool/lines.cpp tool/schedule.cpp tool/portfolio.cpp
  tool/dims.cpp tool/dims_read.cpp tool/dims_groups.cpp tool/dims_tables.cpp tool/dims_drawing.cpp
  tool/model_families.cpp tool/plan_search.cpp tool/plan_request.cpp tool/plan_findings.cpp tool/plan_text.cpp tool/plan_answer.cpp tool/plan_table.cpp tool/plan_chart.cpp
  tool/plan_page.cpp tool/plan_emit.cpp
  tool/search.cpp tool/search_read.cpp tool/search_table.cpp
  tool/program.cpp tool/check.cpp tool/check_messages.cpp tool/check_progress.cpp
  tool/calibrate.cpp tool/calibrate_fit.cpp
  tool/init.cpp tool/tokens.cpp tool/token_writer.cpp tool/text_examples.cpp tool/chat_examples.cpp tool/packer.cpp
  tool/text_encoder.cpp tool/documents.cpp tool/byte_source.cpp tool/explain.cpp tool/rules_text.cpp
  "${starter_embedded}" "${plans_page}" "${messages}")
target_include_directories(rankc_tool_commands
  PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}/tool" PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/include")
target_link_libraries(rankc_tool_commands
  PUBLIC rankc::codegen fmt::fmt nlohmann_json::nlohmann_json PRIVATE rankc_tokenizer rankc_warnings)

# Tokens by a SentencePiece model, if the library is found.
find_path(RANKC_SENTENCEPIECE_INCLUDE sentencepiece_processor.h)
find_library(RANKC_SENTENCEPIECE_LIBRARY sentencepiece)
mark_as_advanced(RANKC_SENTENCEPIECE_INCLUDE RANKC_SENTENCEPIECE_LIBRARY)
if(RANKC_SENTENCEPIECE_INCLUDE AND RANKC_SENTENCEPIECE_LIBRARY)
  set_source_files_properties(tool/text_encoder.cpp PROPERTIES COMPILE_DEFINITIONS RANKC_SENTENCEPIECE)
  target_include_directories(rankc_tool_commands PRIVATE "${RANKC_SENTENCEPIECE_INCLUDE}")
  target_link_libraries(rankc_tool_commands PRIVATE "${RANKC_SENTENCEPIECE_LIBRARY}")
endif()

# Compressed texts, if the libraries are found. Static libraries come first, as for text_libraries.cmake.
find_path(RANKC_ZLIB_INCLUDE zlib.h)
find_library(RANKC_ZLIB_LIBRARY NAMES libz.a z)
find_path(RANKC_ZSTD_INCLUDE zstd.h)
find_library(RANKC_ZSTD_LIBRARY NAMES libzstd.a zstd)
set(compressions)
foreach(library IN ITEMS ZLIB ZSTD)
  mark_as_advanced(RANKC_${library}_INCLUDE RANKC_${library}_LIBRARY)
  if(RANKC_${library}_INCLUDE AND RANKC_${library}_LIBRARY)
    list(APPEND compressions RANKC_${library})
    target_include_directories(rankc_tool_commands PRIVATE "${RANKC_${library}_INCLUDE}")
    target_link_libraries(rankc_tool_commands PRIVATE "${RANKC_${library}_LIBRARY}")
  endif()
endforeach()
set_source_files_properties(tool/byte_source.cpp PROPERTIES COMPILE_DEFINITIONS "${compressions}" SKIP_UNITY_BUILD_INCLUSION ON)

add_executable(rankc_tool tool/main.cpp tool/beside.cpp tool/dims_flags.cpp tool/search_flags.cpp tool/tokens_flags.cpp)
add_dependencies(rankc_tool rankc_verify_program)
add_executable(rankc::rankc ALIAS rankc_tool)
set_target_properties(rankc_tool_commands PROPERTIES UNITY_BUILD ON)
set_target_properties(rankc_tool PROPERTIES OUTPUT_NAME rankc EXPORT_NAME rankc UNITY_BUILD ON)
target_link_libraries(rankc_tool PRIVATE rankc_tool_commands CLI11::CLI11 rankc_warnings)
# Most of this code reads requests and writes answers. At -O3 it takes twice as long to compile, and a search
# for 2,048 GPUs takes 2.3 s instead of 2.8 s.
target_compile_options(rankc_tool_commands PRIVATE $<$<CONFIG:Release>:-O1>)
target_compile_options(rankc_tool PRIVATE $<$<CONFIG:Release>:-O1>)
