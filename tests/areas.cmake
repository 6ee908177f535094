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
  translation/mutants:90 fp8:95 codegen/lowering:80 translation/odd:60 odd:56 columns:53 programs_parity:46 programs_losses_f64:44
  codegen/tool:42 experts:40 codegen/proof:39 equivalence:75 cost_model:48 hugging_face:40 logits:30 dsl/rejects/typed/g++:35
  dsl/rejects/memory/g++:28 dsl/rejects/recipe/g++:27 dsl/rejects/schedule/g++:22 launch/processes/signals:25 launch/faults:23
  launch:22 programs_losses_f32:25 dsl:23)

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
