# The gate that every program passes before it is written, and the generator's commands in the form that a
# build uses.
add_executable(rankc_generator_test codegen/gate_test.cpp codegen/commands_test.cpp)
target_link_libraries(rankc_generator_test PRIVATE rankc_test_plans rankc::codegen rankc::verify rankc_test_main)
add_test(NAME codegen/generator COMMAND rankc_generator_test)
add_test(NAME codegen/generator/full_output COMMAND sh -c "$<TARGET_FILE:gpt_pp2_rankc> describe > /dev/full")
set_tests_properties(codegen/generator/full_output PROPERTIES PASS_REGULAR_EXPRESSION "^error: RC7901: standard output cannot be written\n$")
