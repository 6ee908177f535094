# Style of the sources: clang-format's rules, and rules that it does not have.
add_library(rankc_style_rules STATIC style/blocks.cpp style/brackets.cpp style/columns.cpp style/commas.cpp
  style/conditionals.cpp style/imports.cpp style/lexer.cpp style/messages.cpp style/rules.cpp style/statuses.cpp style/words.cpp)
target_compile_features(rankc_style_rules PUBLIC cxx_std_20)
target_link_libraries(rankc_style_rules PRIVATE rankc_warnings)
add_executable(rankc_style style/main.cpp)
target_link_libraries(rankc_style PRIVATE rankc_style_rules rankc_warnings)
add_test(NAME style/statements COMMAND ${CMAKE_COMMAND} -DROOT=${rankc_SOURCE_DIR} -DCHECK=$<TARGET_FILE:rankc_style>
  -P ${CMAKE_CURRENT_SOURCE_DIR}/style/statements.cmake)

add_executable(rankc_style_test style/brackets_test.cpp style/commas_test.cpp style/conditionals_test.cpp
  style/lexer_test.cpp style/messages_test.cpp style/rules_test.cpp style/statuses_test.cpp style/words_test.cpp)
target_link_libraries(rankc_style_test PRIVATE rankc_style_rules rankc_test_main)
add_test(NAME style/rules COMMAND rankc_style_test)

# One golden file has every sentence with an id of the runtime and the generator.
add_executable(rankc_messages style/list_messages.cpp)
target_link_libraries(rankc_messages PRIVATE rankc_style_rules rankc_warnings)
add_test(NAME style/messages COMMAND ${CMAKE_COMMAND} -DROOT=${rankc_SOURCE_DIR} -DLIST=$<TARGET_FILE:rankc_messages>
  -DOUT=${CMAKE_CURRENT_BINARY_DIR}/messages.txt
  -P ${CMAKE_CURRENT_SOURCE_DIR}/style/messages.cmake)

# Checks comments and pages for the habits of style/words.hpp, except those in a list that only shrinks.
add_executable(rankc_words style/words_main.cpp)
target_link_libraries(rankc_words PRIVATE rankc_style_rules rankc_warnings)
add_test(NAME style/words COMMAND ${CMAKE_COMMAND} -DROOT=${rankc_SOURCE_DIR} -DWORDS=$<TARGET_FILE:rankc_words>
  -P ${CMAKE_CURRENT_SOURCE_DIR}/style/words.cmake)

# Another version formats differently.
function(rankc_is_clang_format_19 result program)
  execute_process(COMMAND "${program}" --version OUTPUT_VARIABLE version)
  if(NOT version MATCHES "clang-format version 19\\.")
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()
find_program(RANKC_CLANG_FORMAT NAMES clang-format-19 clang-format VALIDATOR rankc_is_clang_format_19)
if(RANKC_CLANG_FORMAT)
  add_test(NAME style/format COMMAND ${CMAKE_COMMAND} -DROOT=${rankc_SOURCE_DIR} -DCLANG_FORMAT=${RANKC_CLANG_FORMAT}
    -DOUT=${CMAKE_CURRENT_BINARY_DIR}/style_format -P ${CMAKE_CURRENT_SOURCE_DIR}/style/format.cmake)
else()
  add_test(NAME style/format COMMAND sh -c "echo 'clang-format 19 is not found'; exit 77")
endif()
set_tests_properties(style/format PROPERTIES SKIP_RETURN_CODE 77 PROCESSORS 2)

# A precompiled header hides a missing include: `long` compiles all sources without it.
if(RANKC_PCH)
  add_test(NAME style/includes COMMAND ${CMAKE_CTEST_COMMAND}
    --build-and-test "${rankc_SOURCE_DIR}" "${CMAKE_CURRENT_BINARY_DIR}/without_pch" --build-generator "${CMAKE_GENERATOR}"
    --build-options -DRANKC_PCH=OFF -DRANKC_CUDA=OFF "-DRANKC_INJECT=${RANKC_INJECT}" "-DRANKC_WERROR=${RANKC_WERROR}"
                    "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" "-DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}"
                    "-DCMAKE_CXX_FLAGS_RELEASE=${CMAKE_CXX_FLAGS_RELEASE}")
  set_tests_properties(style/includes PROPERTIES LABELS long TIMEOUT 7200 PROCESSORS 2)
endif()

# clang 19 compiles what g++ compiles; the commands need the programs that the generators have written.
find_program(RANKC_CLANG clang++-19)
if(RANKC_CLANG)
  add_test(NAME style/clang COMMAND ${CMAKE_COMMAND} -DROOT=${rankc_SOURCE_DIR} -DBUILT=${rankc_BINARY_DIR}
    -DOUT=${CMAKE_CURRENT_BINARY_DIR}/clang -DCLANG=${RANKC_CLANG} -P ${CMAKE_CURRENT_SOURCE_DIR}/style/clang.cmake)
  set_tests_properties(style/clang PROPERTIES LABELS long TIMEOUT 14400 PROCESSORS 2)
endif()
