# The builds of `ci` compile a sample of the programs of some families (families/sample.hpp). The first test of `long`
# compiles all of them and links the tests of these families with them; where it fails, these tests fail.
add_custom_target(rankc_every_program)
add_test(NAME programs_every_build
  COMMAND ${CMAKE_COMMAND} --build "${PROJECT_BINARY_DIR}" --target rankc_every_program)
set_tests_properties(programs_every_build PROPERTIES LABELS long TIMEOUT 7200 FIXTURES_SETUP every_program
  RESOURCE_LOCK build)

# The test `name` in `long`: the objects of an executable that is linked with a family's sample are linked
# with every program.
function(rankc_every_program name executable family)
  get_target_property(libraries ${executable} LINK_LIBRARIES)
  if(NOT "rankc_${family}_host" IN_LIST libraries)
    message(FATAL_ERROR "${executable} is not linked with rankc_${family}_host")
  endif()
  list(TRANSFORM libraries REPLACE "^rankc_${family}_host$" "rankc_${family}_every_host")
  add_executable(${executable}_every EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${executable}>)
  target_link_libraries(${executable}_every PRIVATE ${libraries})
  set_target_properties(${executable}_every PROPERTIES LINKER_LANGUAGE CXX)
  add_dependencies(rankc_every_program ${executable}_every)
  add_test(NAME ${name} COMMAND ${executable}_every)
  set_tests_properties(${name} PROPERTIES LABELS long TIMEOUT 3600 FIXTURES_REQUIRED every_program)
endfunction()
