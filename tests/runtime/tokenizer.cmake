# Tokenizers of tokenizer.json, against ids of the `tokenizers` package (oracles/tokenizers).
if(TARGET rankc::text_libraries)
  set(folder runtime/trainer/tokenizer)
  add_executable(rankc_tokenizer_test ${folder}/byte_pairs_test.cpp ${folder}/expression_test.cpp
    ${folder}/normal_form_test.cpp ${folder}/read_tokenizer_test.cpp ${folder}/tokenizer_test.cpp)
  target_compile_definitions(rankc_tokenizer_test PRIVATE RANKC_TOKENIZERS="${CMAKE_CURRENT_SOURCE_DIR}/oracles/tokenizers")
  target_link_libraries(rankc_tokenizer_test PRIVATE rankc_tokenizer fmt::fmt nlohmann_json::nlohmann_json rankc_test_main)
  add_test(NAME trainer/tokenizer COMMAND rankc_tokenizer_test)
  rankc_every_mutant(trainer/tokenizer rankc_tokenizer_test "a word of a million letters*")
endif()
