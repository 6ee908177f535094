# A second check of lowered programs. The programs and mutants of them run over a prime field, and in f64, and
# are compared with the model on one device.
set(machine_sources
  codegen/equivalence/field/rows/row_table.cpp
  codegen/equivalence/field/rows/model_attributes.cpp
  codegen/equivalence/field/machine/element_types.cpp
  codegen/equivalence/field/rows/rows.cpp
  codegen/equivalence/field/rows/rows_products.cpp
  codegen/equivalence/field/rows/rows_tables.cpp
  codegen/equivalence/field/rows/rows_elements.cpp
  codegen/equivalence/field/rows/rows_experts.cpp
  codegen/equivalence/field/rows/rows_balance.cpp
  codegen/equivalence/field/machine/model.cpp
  codegen/equivalence/field/machine/holdings.cpp
  codegen/equivalence/field/machine/final_state.cpp
  codegen/equivalence/field/machine/compute.cpp
  codegen/equivalence/field/machine/message.cpp
  codegen/equivalence/field/rows/slots.cpp
  codegen/equivalence/field/machine/collective.cpp
  codegen/equivalence/field/machine/machine.cpp
  codegen/equivalence/field/machine/execution.cpp)
add_library(rankc_field STATIC ${machine_sources}
  codegen/equivalence/field/rows/rows_activations.cpp
  codegen/equivalence/field/rows/rows_norms.cpp
  codegen/equivalence/field/rows/rows_attention.cpp
  codegen/equivalence/field/rows/rows_loss.cpp
  codegen/equivalence/field/rows/rows_routers.cpp
  codegen/equivalence/field/machine/update.cpp)
# The same machine and model in f64: field.hpp's numbers are f64.hpp's, and the namespace is separate.
add_library(rankc_field_f64 STATIC ${machine_sources}
  codegen/equivalence/field/rows/f64_rows.cpp
  codegen/equivalence/field/rows/f64_rows_of_tokens.cpp
  codegen/equivalence/field/rows/f64_rows_routers.cpp)
target_compile_definitions(rankc_field_f64 PRIVATE FIELD_IN_F64 field=field_f64)
target_link_libraries(rankc_field_f64 PRIVATE rankc_runtime_host)
foreach(machine IN ITEMS rankc_field rankc_field_f64)
  # program.hpp, specification.hpp and rope_scaling.hpp alone
  target_include_directories(${machine} SYSTEM PUBLIC "${PROJECT_SOURCE_DIR}/codegen" "${PROJECT_SOURCE_DIR}/runtime/core")
  target_link_libraries(${machine} PRIVATE rankc_warnings)
  target_compile_features(${machine} PUBLIC cxx_std_20)
endforeach()

# The compiler spends most of its time on the plans themselves, so they are not optimised.
add_library(rankc_field_plans STATIC codegen/equivalence/field/plans/plans.cpp codegen/equivalence/field/plans/plans_experts.cpp codegen/equivalence/field/plans/loader.cpp)
target_link_libraries(rankc_field_plans PRIVATE rankc::codegen rankc_drawn_plans rankc_warnings)
target_compile_options(rankc_field_plans PRIVATE -O0)

add_library(rankc_field_mutants STATIC
  codegen/equivalence/field/mutants/mutants.cpp
  codegen/equivalence/field/mutants/mutants_ops.cpp
  codegen/equivalence/field/mutants/mutants_operands.cpp
  codegen/equivalence/field/mutants/mutants_types.cpp
  codegen/equivalence/field/mutants/mutants_views.cpp
  codegen/equivalence/field/mutants/mutants_communication.cpp
  codegen/equivalence/field/mutants/mutants_experts.cpp
  codegen/equivalence/field/mutants/mutants_holdings.cpp
  codegen/equivalence/field/mutants/mutants_model.cpp
  codegen/equivalence/field/mutants/mutant.cpp
  codegen/equivalence/field/mutants/opinions.cpp
  codegen/equivalence/field/mutants/class_table.cpp
  codegen/equivalence/field/mutants/judge.cpp)
target_link_libraries(rankc_field_mutants PUBLIC
  rankc_field_plans rankc_field rankc_field_f64 rankc_drawn_plans rankc::codegen rankc_proof_testing PRIVATE rankc_warnings)

add_executable(rankc_field_test
  codegen/equivalence/field/rows/rows_test.cpp
  codegen/equivalence/field/rows/rows_experts_test.cpp
  codegen/equivalence/field/rows/rows_balance_test.cpp
  codegen/equivalence/field/rows/slots_test.cpp
  codegen/equivalence/field/machine/machine_test.cpp
  codegen/equivalence/field/machine/f64_test.cpp
  codegen/equivalence/field/mutants/class_table_test.cpp
  codegen/equivalence/field/mutants/model_attributes_test.cpp
  codegen/equivalence/field/mutants/mutants_test.cpp)
target_link_libraries(rankc_field_test PRIVATE rankc_field_mutants rankc_test_main)
add_test(NAME equivalence/field COMMAND rankc_field_test)
rankc_every_mutant(equivalence/field rankc_field_test "*the checker accepts n*,mutants of programs of tiny plans*,tiny plans of*,experts on ranks of their own*programs leave*,drawn plans: programs*")

# The checker over finite fields is tested together with the checker over terms.
if(TARGET rankc::equivalence)
  target_sources(rankc_field_mutants PRIVATE codegen/equivalence/field/mutants/checker.cpp)
  target_link_libraries(rankc_field_mutants PUBLIC rankc::equivalence)
  target_sources(rankc_field_test PRIVATE
    codegen/equivalence/field/mutants/checker_test.cpp codegen/equivalence/field/mutants/bf16_sums_test.cpp codegen/equivalence/field/mutants/loaded_rows_test.cpp codegen/equivalence/field/mutants/shards_test.cpp codegen/equivalence/field/mutants/experts_test.cpp)
  find_package(CLI11 REQUIRED)
  add_executable(field_mutants codegen/equivalence/field/mutants/many.cpp)
  add_executable(field_plans codegen/equivalence/field/mutants/many_plans.cpp)
  foreach(tool IN ITEMS field_mutants field_plans)
    target_link_libraries(${tool} PRIVATE rankc_field_mutants CLI11::CLI11 rankc_warnings)
    target_compile_options(${tool} PRIVATE -O0)  # most of their time are the headers of CLI11
  endforeach()
  add_test(NAME equivalence/field_mutants COMMAND field_mutants --from 0 --count 256)
  add_test(NAME equivalence/field_mutants_long COMMAND field_mutants --from 0 --count 40000)
  add_test(NAME equivalence/field_plans_long COMMAND field_plans --count 15000)
  set_tests_properties(equivalence/field_mutants_long equivalence/field_plans_long PROPERTIES LABELS long TIMEOUT 14400)
endif()
