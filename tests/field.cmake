# A second check of lowered programs. The programs and mutants of them run over a prime field, and in f64, and
# are compared with the model on one device.
set(machine_sources
  equivalence/field/row_table.cpp
  equivalence/field/model_attributes.cpp
  equivalence/field/element_types.cpp
  equivalence/field/rows.cpp
  equivalence/field/rows_products.cpp
  equivalence/field/rows_tables.cpp
  equivalence/field/rows_elements.cpp
  equivalence/field/rows_experts.cpp
  equivalence/field/rows_balance.cpp
  equivalence/field/model.cpp
  equivalence/field/holdings.cpp
  equivalence/field/final_state.cpp
  equivalence/field/compute.cpp
  equivalence/field/message.cpp
  equivalence/field/slots.cpp
  equivalence/field/collective.cpp
  equivalence/field/machine.cpp
  equivalence/field/execution.cpp)
add_library(rankc_field STATIC ${machine_sources}
  equivalence/field/rows_activations.cpp
  equivalence/field/rows_norms.cpp
  equivalence/field/rows_attention.cpp
  equivalence/field/rows_loss.cpp
  equivalence/field/rows_routers.cpp
  equivalence/field/update.cpp)
# The same machine and model in f64: field.hpp's numbers are f64.hpp's, and the namespace is separate.
add_library(rankc_field_f64 STATIC ${machine_sources}
  equivalence/field/f64_rows.cpp
  equivalence/field/f64_rows_of_tokens.cpp
  equivalence/field/f64_rows_routers.cpp)
target_compile_definitions(rankc_field_f64 PRIVATE FIELD_IN_F64 field=field_f64)
target_link_libraries(rankc_field_f64 PRIVATE rankc_runtime_host)
foreach(machine IN ITEMS rankc_field rankc_field_f64)
  target_include_directories(${machine} PUBLIC equivalence)
  # program.hpp, specification.hpp and rope_scaling.hpp alone
  target_include_directories(${machine} SYSTEM PUBLIC "${PROJECT_SOURCE_DIR}/codegen" "${PROJECT_SOURCE_DIR}/runtime/core")
  target_link_libraries(${machine} PRIVATE rankc_warnings)
  target_compile_features(${machine} PUBLIC cxx_std_20)
endforeach()

# The compiler spends most of its time on the plans themselves, so they are not optimised.
add_library(rankc_field_plans STATIC equivalence/field/plans.cpp equivalence/field/plans_experts.cpp equivalence/field/loader.cpp)
target_link_libraries(rankc_field_plans PRIVATE rankc::codegen rankc_drawn_plans rankc_warnings)
target_compile_options(rankc_field_plans PRIVATE -O0)

add_library(rankc_field_mutants STATIC
  equivalence/field/mutants.cpp
  equivalence/field/mutants_ops.cpp
  equivalence/field/mutants_operands.cpp
  equivalence/field/mutants_types.cpp
  equivalence/field/mutants_views.cpp
  equivalence/field/mutants_communication.cpp
  equivalence/field/mutants_experts.cpp
  equivalence/field/mutants_holdings.cpp
  equivalence/field/mutants_model.cpp
  equivalence/field/mutant.cpp
  equivalence/field/opinions.cpp
  equivalence/field/class_table.cpp
  equivalence/field/judge.cpp)
target_link_libraries(rankc_field_mutants PUBLIC
  rankc_field_plans rankc_field rankc_field_f64 rankc_drawn_plans rankc::codegen rankc_proof_testing PRIVATE rankc_warnings)

add_executable(rankc_field_test
  equivalence/field/rows_test.cpp
  equivalence/field/rows_experts_test.cpp
  equivalence/field/rows_balance_test.cpp
  equivalence/field/slots_test.cpp
  equivalence/field/machine_test.cpp
  equivalence/field/f64_test.cpp
  equivalence/field/class_table_test.cpp
  equivalence/field/model_attributes_test.cpp
  equivalence/field/mutants_test.cpp)
target_link_libraries(rankc_field_test PRIVATE rankc_field_mutants rankc_test_main)
add_test(NAME equivalence/field COMMAND rankc_field_test)
rankc_every_mutant(equivalence/field rankc_field_test "*the checker accepts n*,mutants of programs of tiny plans*,tiny plans of*,experts on ranks of their own*programs leave*,drawn plans: programs*")

# The checker over finite fields is tested together with the checker over terms.
if(TARGET rankc::equivalence)
  target_sources(rankc_field_mutants PRIVATE equivalence/field/checker.cpp)
  target_link_libraries(rankc_field_mutants PUBLIC rankc::equivalence)
  target_sources(rankc_field_test PRIVATE
    equivalence/field/checker_test.cpp equivalence/field/bf16_sums_test.cpp equivalence/field/loaded_rows_test.cpp equivalence/field/shards_test.cpp equivalence/field/experts_test.cpp)
  find_package(CLI11 REQUIRED)
  add_executable(field_mutants equivalence/field/many.cpp)
  add_executable(field_plans equivalence/field/many_plans.cpp)
  foreach(tool IN ITEMS field_mutants field_plans)
    target_link_libraries(${tool} PRIVATE rankc_field_mutants CLI11::CLI11 rankc_warnings)
    target_compile_options(${tool} PRIVATE -O0)  # most of their time are the headers of CLI11
  endforeach()
  add_test(NAME equivalence/field_mutants COMMAND field_mutants --from 0 --count 256)
  add_test(NAME equivalence/field_mutants_long COMMAND field_mutants --from 0 --count 40000)
  add_test(NAME equivalence/field_plans_long COMMAND field_plans --count 15000)
  set_tests_properties(equivalence/field_mutants_long equivalence/field_plans_long PROPERTIES LABELS long TIMEOUT 14400)
endif()
