# `ctest -L AREA` runs the tests of an area. The tests that take longest start first, so that none of them is left alone at the
# end: a COST is about its seconds on one core.
set(rankc_areas
  "dsl:^dsl"
  "codegen:^(codegen|generated|trace|readme|cost_model)"
  "equivalence:^(equivalence|translation|audit)"
  "core:^(runtime_|rows|protocols)"
  "launch:^launch"
  "trainer:^(trainer|hugging_face|logits)"
  "programs:^(programs|fuzz|odd|experts|columns|independent|balance|routing|recompute|lora|fp8|sequences|documents|optimizer)"
  "install:^install"
  "style:^(style|folders)")
set(rankc_costs
  equivalence/field:50 codegen/lowering:45 programs_parity:46 hugging_face:40 translation/mutants:35
  cost_model:31 launch:38 launch/processes/signals:38 codegen/proof:25 equivalence:26 programs_losses_f64:26
  launch/faults:26 trainer:26 launch/processes/starts:25 translation/experts:23 dsl/heuristics:22 fp8:22 experts:17
  translation/sequences:17 translation/examples:16 translation/starts:15 install/names:15 dsl/rejects/schedule/g++:15
  documents:15 odd:14 columns:14)

# Label the tests of the current folder. Each has one area.
function(rankc_label_tests)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test IN LISTS tests)
    set(found)
    foreach(area IN LISTS rankc_areas)
      string(REGEX REPLACE ":.*" "" name "${area}")
      string(REGEX REPLACE "^[a-z]*:" "" pattern "${area}")
      if(test MATCHES "${pattern}")
        list(APPEND found ${name})
      endif()
    endforeach()
    list(LENGTH found count)
    if(NOT count EQUAL 1)
      message(FATAL_ERROR "the test ${test} has ${count} areas (${found}); tests/areas.cmake gives each test one")
    endif()
    set_property(TEST ${test} APPEND PROPERTY LABELS ${found})
  endforeach()
  foreach(cost IN LISTS rankc_costs)
    string(REGEX REPLACE ":[0-9]*$" "" test "${cost}")
    string(REGEX REPLACE "^.*:" "" seconds "${cost}")
    if(test IN_LIST tests)
      set_property(TEST ${test} PROPERTY COST ${seconds})
    endif()
  endforeach()
endfunction()
