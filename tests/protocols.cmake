# Protocols between lanes, ranks and warps as models (protocols/README.md), checked by spin.
find_program(RANKC_SPIN spin)

# `macros` are the model's macros. Further arguments are faults, NAME:data or NAME:hang, each of which must be
# detected.
function(rankc_protocol name model macros)
  add_test(NAME protocols/${name} COMMAND ${CMAKE_COMMAND} "-DSPIN=${RANKC_SPIN}" "-DCC=${CMAKE_CXX_COMPILER};-x;c"
    "-DMODEL=${CMAKE_CURRENT_SOURCE_DIR}/protocols/${model}.pml" "-DOUT=${CMAKE_CURRENT_BINARY_DIR}/protocols/${name}"
    "-DDEFINES=${macros}" "-DFAULTS=${ARGN}" -P "${CMAKE_CURRENT_SOURCE_DIR}/protocols/check.cmake")
  set_tests_properties(protocols/${name} PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: spin is not installed")
endfunction()

rankc_protocol(quick rows RANKS=2 NO_BARRIER:data)

rankc_protocol(meeting_2 meeting RANKS=2 NO_FIRST_MEETING:data NO_SECOND_MEETING:data RELAXED_STORE:data
  FLAG_WITHOUT_COUNT:data NO_WARP_BARRIER:hang)
rankc_protocol(meeting_2_dies meeting "RANKS=2;DIES" NO_STOP:hang)
rankc_protocol(meeting_3 meeting "RANKS=3;LOCKSTEP" NO_FIRST_MEETING:data NO_SECOND_MEETING:data)
rankc_protocol(meeting_3_dies meeting "RANKS=3;LOCKSTEP;DIES" NO_STOP:hang)
rankc_protocol(meeting_4 meeting "RANKS=4;LOCKSTEP")

rankc_protocol(rows_2 rows RANKS=2 NO_HOLD_BACK:data NO_ZERO:data)
rankc_protocol(rows_3 rows RANKS=3 NO_BARRIER:data NO_AWAIT:data NO_HOLD:data NO_HOLD_BACK:data TAKEN_BEFORE_COPY:data
  REUSED_EARLY:data NO_ZERO:data ONE_TELL_LESS:hang)
rankc_protocol(rows_4_gather rows "RANKS=4;ROUNDS=1;COARSE")
rankc_protocol(rows_4_deal rows "RANKS=4;ROUNDS=1;COARSE;ONLY_DEALS" OVERWRITTEN_EARLY:data)

rankc_protocol(edges_2 edges RANKS=2 NO_BARRIER:data NO_FREE:data THERE_BEFORE_COPY:data OVERWRITTEN_EARLY:data
  REUSED_EARLY:data NO_ZERO:data MARKED_EARLY:data)
rankc_protocol(edges_2_dies edges "RANKS=2;STEPS=1;DIES" LET_GO_ONCE:hang)
rankc_protocol(edges_3 edges "RANKS=3;STEPS=1")

rankc_protocol(stages stages STAGES=2 NO_EMPTY_WAIT:data NO_TURN:data NO_LANDED_WAIT:data LANDED_ONCE:data NO_PROXY_FENCE:data
  RELEASE_EARLY:data NO_FIRST_MEETING:data NO_LAST_MEETING:data)

rankc_protocol(queries_gradient places STAGES=2 RELEASE_EARLY:data ITEM_RELEASED_EARLY:data NO_EMPTY_WAIT:data
  TOO_FEW_FILLERS:data NO_PASS:hang)
rankc_protocol(forward places "STAGES=2;FORWARD" NO_PASS:hang RELEASE_EARLY:data)
rankc_protocol(keys_gradient places "STAGES=3;KEYS;ITEMS=2" NO_PASS:hang ONE_STAGE_LESS:hang)
rankc_protocol(masked_keys_gradient places "STAGES=3;KEYS;MASKED;PLACES=1;ITEMS=2" NO_PASS:hang HELD_PAST_HEAD:hang
  ITEM_RELEASED_EARLY:data)

get_property(protocols DIRECTORY PROPERTY TESTS)
list(FILTER protocols INCLUDE REGEX "^protocols/")
list(REMOVE_ITEM protocols protocols/quick)
set_tests_properties(${protocols} PROPERTIES LABELS long TIMEOUT 1800)
