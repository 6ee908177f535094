# `rankc-verify`: a separate program that checks a certificate. With the generator it shares the schema and
# the comparison with the model. It links neither the generator's passes nor its proof.
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)

add_library(rankc_verify STATIC
  verify/schedule.cpp verify/operands.cpp verify/represented.cpp verify/ends.cpp verify/memory.cpp verify/by_rows.cpp
  verify/verify.cpp verify/report.cpp)
add_library(rankc::verify ALIAS rankc_verify)
set_target_properties(rankc_verify PROPERTIES EXPORT_NAME verify UNITY_BUILD ON)
target_link_libraries(rankc_verify PUBLIC rankc_certificate rankc_equivalence
                      PRIVATE fmt::fmt $<BUILD_INTERFACE:rankc_warnings>)

add_executable(rankc_verify_program verify/main.cpp)
set_target_properties(rankc_verify_program PROPERTIES OUTPUT_NAME rankc-verify EXPORT_NAME rankc-verify)
target_link_libraries(rankc_verify_program PRIVATE rankc_verify rankc_dsl CLI11::CLI11 rankc_warnings)
target_compile_options(rankc_verify_program PRIVATE $<$<CONFIG:Release>:-O1>)
