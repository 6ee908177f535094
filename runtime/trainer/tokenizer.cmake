# Tokenizers from tokenizer.json, for the trainer and for `rankc tokens`, with the file and JSON readers of
# both.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
include(${CMAKE_CURRENT_LIST_DIR}/text_libraries.cmake)

add_library(rankc_tokenizer STATIC
  trainer/chat/chat_form.cpp
  trainer/chat/read_messages.cpp
  trainer/chat/write_chat.cpp
  trainer/json/json_file.cpp
  trainer/model_files.cpp
  trainer/tokenizer/added_tokens.cpp
  trainer/tokenizer/byte_letters.cpp
  trainer/tokenizer/byte_pairs.cpp
  trainer/tokenizer/expression.cpp
  trainer/tokenizer/pre_tokenizer.cpp
  trainer/tokenizer/read_ends.cpp
  trainer/tokenizer/read_model.cpp
  trainer/tokenizer/read_pre_tokenizer.cpp
  trainer/tokenizer/read_tokenizer.cpp
  trainer/tokenizer/tokenizer.cpp
  trainer/tokenizer/utf8.cpp)
add_library(rankc::tokenizer ALIAS rankc_tokenizer)
set_target_properties(rankc_tokenizer PROPERTIES EXPORT_NAME tokenizer UNITY_BUILD ON)
target_compile_features(rankc_tokenizer PUBLIC cxx_std_20)
target_include_directories(rankc_tokenizer PUBLIC
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/core> $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/trainer>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(rankc_tokenizer
  PRIVATE fmt::fmt $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> $<BUILD_INTERFACE:rankc_warnings>)
if(TARGET rankc::text_libraries)
  target_sources(rankc_tokenizer PRIVATE trainer/tokenizer/normal_form.cpp trainer/tokenizer/pattern.cpp)
  target_link_libraries(rankc_tokenizer PRIVATE rankc::text_libraries)
else()
  message(STATUS "rankc: no PCRE2 or utf8proc was found (libpcre2-dev, libutf8proc-dev); tokenizer.json files are not read")
  target_sources(rankc_tokenizer PRIVATE trainer/tokenizer/without_text_libraries.cpp)
endif()
